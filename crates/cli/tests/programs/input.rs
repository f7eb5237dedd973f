//! Makes the input of the programs: small files, the same every time.

use std::fmt::Write as _;
use std::path::Path;

const WORDS: [&str; 16] = [
    "lock", "thread", "wait", "wake", "queue", "turn", "step", "clock", "fork", "join", "barrier", "signal",
    "yield", "spin", "fair", "race",
];

fn write(directory: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
    std::fs::write(path, bytes).expect("a file is written");
}

/// Pseudo-random numbers (a linear congruential generator with Knuth's constants).
fn numbers() -> impl Iterator<Item = usize> {
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(Some(1), next).map(|state| (state >> 40) as usize)
}

fn some_text(bytes: usize) -> String {
    let mut text = String::new();
    for number in numbers() {
        let _ = write!(text, "{} {:x}", WORDS[number % WORDS.len()], number % 4096);
        text.push(if number % 7 == 0 { '\n' } else { ' ' });
        if text.len() >= bytes {
            break;
        }
    }
    text
}

/// Makes no input.
pub fn none(_directory: &Path) {}

/// `text`: a few pages, for compressors with blocks of 64 KiB and up.
pub fn text(directory: &Path) {
    write(directory, "text", some_text(400_000));
}

/// `long`: more text, for compressors with larger blocks.
pub fn long_text(directory: &Path) {
    write(directory, "long", some_text(2_500_000));
}

/// `lines`: more than 128 Ki lines, so that `sort` uses threads.
pub fn lines(directory: &Path) {
    let mut text = String::new();
    for number in numbers().take(300_000) {
        let _ = writeln!(text, "{number:x}");
    }
    write(directory, "lines", text);
}

/// `tree/`: files in directories.
pub fn tree(directory: &Path) {
    for (number, start) in numbers().take(24).enumerate() {
        let name = format!("tree/{}/{}/file{number}", number % 3, number % 2);
        write(directory, &name, &some_text(20_000)[start % 5_000..]);
    }
}

/// `clip.y4m`: a few frames of a small film.
pub fn clip(directory: &Path) {
    const WIDTH: usize = 64;
    const HEIGHT: usize = 48;
    let mut film = format!("YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C420jpeg\n").into_bytes();
    for frame in 0..12 {
        film.extend_from_slice(b"FRAME\n");
        for (height, width) in [(HEIGHT, WIDTH), (HEIGHT / 2, WIDTH / 2), (HEIGHT / 2, WIDTH / 2)] {
            let at = |i: usize| ((i % width) * 5 + (i / width) * 3 + frame * 7) as u8;
            film.extend((0..width * height).map(at));
        }
    }
    write(directory, "clip.y4m", film);
}

/// `project/`: a program in four files. Its build ends with a run of the program.
pub fn project(directory: &Path) {
    let units = ["one", "two", "three"];
    let objects = "main.o one.o two.o three.o";
    let makefile = format!(
        "all: program\n\t./program\nprogram: {objects}\n\t$(CC) -o $@ {objects}\n%.o: %.c\n\t$(CC) -O0 -c -o $@ $<\n"
    );
    write(directory, "project/Makefile", makefile);
    let mut main = String::from("#include <stdio.h>\n");
    for (number, unit) in units.iter().enumerate() {
        write(directory, &format!("project/{unit}.c"), format!("int {unit}(void) {{ return {number}; }}\n"));
        let _ = writeln!(main, "int {unit}(void);");
    }
    main.push_str("int main(void) { printf(\"%d\\n\", one() + two() + three()); return 0; }\n");
    write(directory, "project/main.c", main);
}

/// `data.json`.
pub fn json(directory: &Path) {
    let items: Vec<String> =
        (0..40).map(|n| format!("{{\"n\": {n}, \"s\": \"{}\"}}", WORDS[n % 16])).collect();
    write(directory, "data.json", format!("{{\"a\": [{}]}}", items.join(", ")));
}
