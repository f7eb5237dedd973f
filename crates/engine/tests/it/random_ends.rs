//! Compares searches on random programs that free or unmap memory with one that knows no race check: there every access is
//! a scheduling point.

use heisen_testkit::{Sandbox, usual_or_nightly};

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Something that a thread does, on memory of so many words.
fn operation(random: &mut Random, words: u64, depth: u32) -> String {
    let word = random.one_of(&[0, 1, words / 2, words - 1]);
    let value = 1 + random.below(3);
    match random.below(if depth > 0 { 8 } else { 5 }) {
        0 | 1 => format!("x += p[{word}];"),
        2 | 3 => format!("p[{word}] = {value};"),
        4 => format!("atomic_store(&f, {value});"),
        5 => format!("if (atomic_load(&f) == {value}) {{ {} }}", operation(random, words, 0)),
        6 => "sem_post(&s);".to_owned(),
        _ => {
            let two = [operation(random, words, 0), operation(random, words, 0)].concat();
            format!("pthread_mutex_lock(&m); {two} pthread_mutex_unlock(&m);")
        }
    }
}

/// Ends the memory, at most once.
fn ending(random: &mut Random, end: &str) -> String {
    let value = 1 + random.below(2);
    let once = "!atomic_exchange(&gone, 1)";
    match random.below(4) {
        0 => format!("if (atomic_fetch_add(&n, 1) == {value} && {once}) {end}"),
        1 => format!("sem_wait(&s); if ({once}) {end}"),
        2 => format!("if (atomic_load(&f) == {value} && {once}) {end}"),
        _ => format!("pthread_mutex_lock(&m); if ({once}) {end} pthread_mutex_unlock(&m);"),
    }
}

fn program(seed: u64) -> String {
    let mut random = Random(seed);
    let words = random.one_of(&[16, 1500, 5000]);
    let (make, end) = random.one_of(&[
        ("calloc(1, SIZE)", "free(p);"),
        ("mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)", "munmap(p, SIZE);"),
    ]);
    let mut body = || {
        let mut all: Vec<String> = (0..=random.below(3)).map(|_| operation(&mut random, words, 1)).collect();
        if random.below(2) == 0 {
            let at = random.one_of(&[0, all.len(), all.len()]);
            all.insert(at, ending(&mut random, end));
        }
        all.join(" ")
    };
    let (one, two) = (body(), body());
    let mut last = [String::new(), ending(&mut random, end)];
    if random.below(2) == 0 {
        last.reverse();
    }
    let [before, after] = last;
    format!(
        "#include <pthread.h>\n#include <semaphore.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
         #include <sys/mman.h>\nenum {{ SIZE = 4 * {words} }};\nstatic pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static sem_t s;\nstatic atomic_int f, n, gone;\nstatic int *p;\n\
         static void *one(void *a) {{ int x = 0; {one} return x ? a : 0; }}\n\
         static void *two(void *a) {{ int x = 0; {two} return x ? a : 0; }}\n\
         int main(void) {{ sem_init(&s, 0, 1); p = {make}; pthread_t a, b;\npthread_create(&a, 0, one, 0);\n\
         pthread_create(&b, 0, two, 0); {before}\npthread_join(a, 0); pthread_join(b, 0); {after} return 0; }}\n"
    )
}

#[test]
fn searches_find_the_bugs_that_a_search_of_all_accesses_finds() {
    let mut counts = [0, 0];
    for seed in 0..usual_or_nightly(6, 150) {
        let is_bug = |options: &[&str]| {
            // Another check would remember the access points of this one.
            let sandbox = Sandbox::new();
            sandbox.write("p.c", program(seed));
            let args =
                [&["check", "--no-explain", "--no-minimise", "--json", "-"], options, &["p.c"]].concat();
            let json = sandbox.run(&mut sandbox.command(&args)).json();
            let exact = json["complete"] == true || json["findings"] != serde_json::json!([]);
            exact.then(|| json["verdict"] == "bug")
        };
        let fails = is_bug(&["--strategy", "icb", "--bound", "2", "--accesses", "all"]);
        for options in [&["--strategy", "icb", "--bound", "3"][..], &["--strategy", "dpor"]] {
            let found = is_bug(options);
            assert!(
                found.is_none() || fails.is_none() || found == fails,
                "{seed} {options:?}:\n{}",
                program(seed)
            );
            counts[usize::from(found == Some(true))] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count >= 2), "{counts:?}");
}
