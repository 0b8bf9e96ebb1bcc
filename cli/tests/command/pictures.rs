//! Pictures of slices.

use crate::host::Host;

fn pixels(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, pixels)
}

#[test]
fn a_slice_becomes_a_picture_with_fill_and_nan_apart() {
    let host = Host::new();
    host.ok(&[
        "create",
        "a.orth:/t",
        "--shape",
        "1,2,3",
        "--dtype",
        "f32",
        "--fill",
        "-9",
    ]);
    host.write("c.csv", b"1,2,NaN,-9,3,4\n");
    host.ok(&["put", "a.orth:/t", "c.csv"]);
    host.ok(&["get", "a.orth:/t[0, :, :]", "-o", "a.png"]);
    let (width, height, colours) = pixels(&host.read("a.png"));
    assert_eq!((width, height), (3, 2));
    let pixel = |i: usize| &colours[3 * i..3 * i + 3];
    assert_eq!(pixel(2), pixel(3), "NaN and fill");
    assert_eq!(pixel(2)[0], pixel(2)[1], "grey");
    for i in [0, 1, 4, 5] {
        assert_ne!(pixel(i), pixel(2));
        assert_ne!(pixel(i)[0], pixel(i)[2], "no value is grey");
    }
    // An axis of one element does not matter.
    host.ok(&["get", "a.orth:/t", "-o", "b.png"]);
    assert_eq!(host.read("a.png"), host.read("b.png"));
}

#[test]
fn what_is_no_picture_is_refused() {
    let host = Host::new();
    host.ok(&["create", "a.orth:/t", "--shape", "2,2,2", "--dtype", "u8"]);
    host.ok(&["create", "a.orth:/s", "--shape", "2,2", "--dtype", "string"]);
    host.fails(2, &["get", "a.orth:/t", "-o", "a.png"]);
    host.fails(2, &["get", "a.orth:/t[0:0, 0, :]", "-o", "a.png"]);
    host.ok(&["put", "a.orth:/s", "--value", "red"]);
    host.fails(2, &["get", "a.orth:/s", "-o", "a.png"]);
    assert!(!host.path("a.png").exists());
}
