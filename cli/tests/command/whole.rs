//! From a real file to a box of it.

use std::path::Path;

use crate::host::{Host, arg, str_of, text_of};

#[test]
fn a_climate_cube_comes_in_whole_and_a_box_of_it_is_the_sources() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/a1b_north_america.npy");
    if !sample.exists() {
        eprintln!(
            "skipped: {} is not there (a packaged crate has no samples)",
            sample.display()
        );
        return;
    }
    let host = Host::new();
    let source = arg(&sample);
    host.ok(&[
        "import",
        &source,
        "climate.orth",
        "--dims",
        "time,latitude,longitude",
        "--chunks",
        "time=24",
    ]);
    let digest = host.json(&["digest", "climate.orth"]);
    let arrays = digest.get("arrays").unwrap().as_array().unwrap();
    // As samples/README.md has it, computed there by other software.
    assert_eq!(
        str_of(&arrays[0], "sha256"),
        "fa3f2d341e21432a130c5ae564b046a190eb75c4674b690e1c67a63d9682f7ee"
    );
    host.ok(&[
        "get",
        "climate.orth:/a1b_north_america[230:235, 16, 20:25]",
        "-o",
        "box.raw",
    ]);
    let file = std::fs::read(&sample).unwrap();
    let elements = &file[file.len() - 240 * 37 * 49 * 4..];
    let mut want = Vec::new();
    for t in 230..235 {
        let start = ((t * 37 + 16) * 49 + 20) * 4;
        want.extend_from_slice(&elements[start..start + 20]);
    }
    assert_eq!(host.read("box.raw"), want);
    // Coordinates can be made years, and the box is the same.
    host.ok(&[
        "translate",
        "climate.orth:/a1b_north_america",
        "--by",
        "1860,0,0",
    ]);
    host.ok(&[
        "get",
        "climate.orth:/a1b_north_america",
        "--sel",
        "time=2090:2095",
        "--sel",
        "latitude=16",
        "--sel",
        "longitude=20:25",
        "-o",
        "years.raw",
    ]);
    assert_eq!(host.read("years.raw"), want);
    host.ok(&[
        "get",
        "climate.orth:/a1b_north_america[1860, :, :]",
        "-o",
        "map.png",
    ]);
    let checked = host.json(&["check", "climate.orth", "--level", "data"]);
    assert_eq!(text_of(&checked, "ok"), "true");
    assert_eq!(text_of(&checked, "problems"), "[]");
}
