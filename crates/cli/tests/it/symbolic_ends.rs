//! Tests that the solver-driven search finds accesses of memory that another thread frees. No path shows them: the access
//! must only come after the end of its memory.

use crate::symbolic::{has_clang, searched};
use heisen_testkit::Sandbox;
use serde_json::json;

/// The bug of each program is found, and its twin, compiled with `FIXED`, is proven.
#[test]
fn uses_after_free_are_found_and_their_absence_is_proven() {
    if !has_clang() {
        return;
    }
    const HEAD: &str = "#include <pthread.h>\n#include <semaphore.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
        struct block { atomic_int refs; int value[3000]; };\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic sem_t s;\nstatic struct block *p;\n";
    let after_a_signal = |index: u32| {
        format!(
            "static void *use(void *a) {{\n#ifdef FIXED\np->value[{index}] = 1; sem_post(&s);\n\
             #else\nsem_post(&s); p->value[{index}] = 1;\n#endif\nreturn a; }}\n\
             static void end(void) {{ sem_wait(&s); free(p); }}\n"
        )
    };
    let in_sections = "static void *use(void *a) { pthread_mutex_lock(&m);\n#ifdef FIXED\nif (p)\n#endif\n\
         p->value[0] = 1; pthread_mutex_unlock(&m); return a; }\n\
         static void end(void) { pthread_mutex_lock(&m); free(p); p = 0; pthread_mutex_unlock(&m); }\n"
        .replace("p = 0;", "\n#ifdef FIXED\np = 0;\n#endif\n");
    let counted = "static void drop(struct block *p) {\n#ifdef FIXED\nif (atomic_fetch_sub(&p->refs, 1) == 1) free(p);\n\
         #else\natomic_fetch_sub(&p->refs, 1); if (!atomic_load(&p->refs)) free(p);\n#endif\n}\n\
         static void *use(void *a) { p->value[0]++; drop(p); return a; }\nstatic void end(void) { drop(p); }\n"
        .to_owned();
    for threads in [after_a_signal(0), after_a_signal(2999), in_sections, counted] {
        let sandbox = Sandbox::new();
        let main = "int main(void) { p = calloc(1, sizeof *p); p->refs = 2; pthread_t t;\n\
                    pthread_create(&t, 0, use, 0); end(); return pthread_join(t, 0); }\n";
        sandbox.write("bug.c", format!("{HEAD}{threads}{main}"));
        sandbox.write("fixed.c", format!("#define FIXED\n{HEAD}{threads}{main}"));
        let json = searched(&sandbox, 1, &["--strategy", "causal", "bug.c"]);
        assert_eq!(json["findings"][0]["kind"], "use-after-free", "{json:#}");
        let json = searched(&sandbox, 0, &["--strategy", "causal", "fixed.c"]);
        assert_eq!((&json["verdict"], &json["complete"]), (&json!("clean"), &json!(true)), "{json:#}");
        searched(&sandbox, 0, &["--strategy", "dpor", "fixed.c"]);
    }
}
