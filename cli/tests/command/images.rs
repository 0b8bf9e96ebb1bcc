//! Images that other software wrote (`tests/data/images/make.py`) have the elements that it reads of them.

use orthant::Json;

use crate::host::{Host, arg, data, str_of, text_of};

#[test]
fn every_image_has_the_elements_that_other_software_reads() {
    let folder = data("images");
    let list = std::fs::read_to_string(folder.join("images.json")).unwrap();
    let list: Json = list.parse().unwrap();
    let mut adopted = 0;
    for (name, arrays) in list.as_object().unwrap() {
        let host = Host::new();
        let ran = host.run(&["import", &arg(&folder.join(name)), "x.orth", "--json"]);
        let report = ran.json();
        let rows = report.get("arrays").and_then(Json::as_array).unwrap();
        let arrays = arrays.as_object().unwrap();
        assert_eq!(rows.len(), arrays.len(), "{name}: {report}");
        let refused = |v: &Json| v.as_str().unwrap().starts_with("refused");
        let some = arrays.iter().any(|(_, v)| refused(v));
        assert_eq!(ran.code, i32::from(some), "{name}: {}", ran.err);
        for row in rows {
            let inside = str_of(row, "source");
            let (_, want) = arrays.iter().find(|(k, _)| k == inside).unwrap();
            let want = want.as_str().unwrap();
            if let Some(word) = want.strip_prefix("refused: ") {
                assert!(str_of(row, "reason").contains(word), "{name}: {row}");
                continue;
            }
            adopted += i32::from(str_of(row, "result") == "adopted");
            let target = format!("x.orth:{}", str_of(row, "path"));
            let digest = host.json(&["digest", &target]);
            let digest = digest.get("arrays").and_then(Json::as_array).unwrap();
            assert_eq!(str_of(&digest[0], "sha256"), want, "{name} {inside}");
        }
        if host.path("x.orth").exists() {
            host.ok(&["check", "--level", "data", "x.orth"]);
        }
    }
    assert!(adopted > 0);
}

#[test]
fn what_an_image_says_of_itself_is_kept() {
    let host = Host::new();
    let image = |name: &str| arg(&data("images").join(name));
    host.ok(&["import", &image("pyramid.tif"), "a.orth"]);
    let level = "a.orth:/pyramid/series0/level0";
    let get = |target: &str, name: &str| host.ok(&["attr", "get", target, name]);
    assert_eq!(get(level, "ModelPixelScale"), "[10.0,10.0,0.0]\n");
    assert_eq!(get(level, "GDAL_NODATA"), "65535\n");
    let info = host.json(&["info", level]);
    assert_eq!(text_of(&info, "dims"), r#"["y","x"]"#);
    assert_eq!(text_of(&info, "fill"), "65535");
    assert_eq!(text_of(&info, "chunk_shape"), "[16,16]");
    assert!(text_of(&info, "codecs").contains("numcodecs.zlib"));
    // Tiles lie in the container as they lay in the file.
    let stat = host.json(&["stat", level, "--chunks"]);
    let chunk = &stat.get("chunks").and_then(Json::as_array).unwrap()[0];
    let number = |key: &str| text_of(chunk, key).parse::<usize>().unwrap();
    let stored = &host.read("a.orth")[number("offset")..][..number("stored_bytes")];
    let file = std::fs::read(data("images").join("pyramid.tif")).unwrap();
    assert!(file.windows(stored.len()).any(|w| w == stored));

    host.ok(&["import", &image("be.nii"), "a.orth"]);
    assert_eq!(get("a.orth:/be", "scl_slope"), "0.5\n");
    assert_eq!(get("a.orth:/be", "descrip"), "a ramp\n");
    let info = host.json(&["info", "a.orth:/be"]);
    assert_eq!(text_of(&info, "dims"), r#"["x","y","z"]"#);

    assert_eq!(
        host.run(&["import", &image("channels.precomputed"), "a.orth:/v"])
            .code,
        1
    );
    let info = host.json(&["info", "a.orth:/v/s0"]);
    assert_eq!(text_of(&info, "domain"), "[[-3,2],[0,4],[7,10],[0,2]]");
    assert_eq!(text_of(&info, "origin"), "[-3,0,7,0]");
    assert_eq!(get("a.orth:/v/s0", "resolution"), "[8,8,40]\n");
    assert_eq!(get("a.orth:/v", "type"), "image\n");
}
