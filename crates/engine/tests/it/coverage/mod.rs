//! Tests of `--coverage`: known counts, equal records for equal searches, figures that match the records, and
//! invalid records.

mod bad;
mod counts;
mod figures;
mod paper;

use heisen_testkit::check_json;
use serde_json::Value;
use std::path::Path;

/// Two threads, each with three critical sections of one mutex.
pub const SECTIONS: &str = "#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int a;
static void *f(void *u) { for (int i = 0; i < 3; i++) { pthread_mutex_lock(&m); a++; pthread_mutex_unlock(&m); } return u; }
static void *g(void *u) { for (int i = 0; i < 3; i++) { pthread_mutex_lock(&m); a++; pthread_mutex_unlock(&m); } return u; }
int main(void) { pthread_t x, y;
  pthread_create(&x, 0, f, 0); pthread_create(&y, 0, g, 0); pthread_join(x, 0); pthread_join(y, 0); return 0; }
";

/// Runs `heisen check --coverage` on a file. Returns the record and the result as JSON.
pub fn covered(directory: &Path, file: &str, args: &[&str]) -> (Value, Value) {
    let json = check_json(directory, &[&["--coverage", "run.json"], args, &[file]].concat());
    (record(directory, "run.json"), json)
}

/// Reads a record from its file.
pub fn record(directory: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(directory.join(name)).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

/// One field of each entry of a list.
pub fn each(record: &Value, list: &str, field: &str) -> Vec<u64> {
    record[list].as_array().expect("a list").iter().map(|e| e[field].as_u64().expect("a number")).collect()
}

/// A record without its times.
pub fn without_times(mut record: Value) -> Value {
    for sample in record["growth"].as_array_mut().expect("a list") {
        assert!(sample.as_object_mut().expect("an object").remove("seconds").is_some());
    }
    record
}
