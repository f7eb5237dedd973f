//! Matches patterns with wildcards: `*` stands for any characters, `?` for any single one.

/// Whether a pattern matches a name, or the part of it after one of its separators.
pub(crate) fn matches_end(pattern: &str, name: &str, separator: &str) -> bool {
    let rests = name.match_indices(separator).map(|(at, _)| &name[at + separator.len()..]);
    std::iter::once(name).chain(rests).any(|rest| glob(pattern.as_bytes(), rest.as_bytes()))
}

/// Whether a pattern matches a text.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The last star, and where the text that it matches ends. After a mismatch it matches one more character.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, eaten)) => {
                    *eaten += 1;
                    (p, t) = (*at + 1, *eaten);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        let fits = |pattern: &str, text: &str| glob(pattern.as_bytes(), text.as_bytes());
        assert!(fits("queue_*", "queue_push") && fits("queue_*", "queue_"));
        assert!(fits("*", "") && fits("", "") && fits("a?c", "abc") && fits("*a*b", "xaxbxb"));
        assert!(
            !fits("queue_*", "my_queue_push") && !fits("a?c", "ac") && !fits("", "a") && !fits("a*b", "a")
        );
        assert!(!fits(&"a*".repeat(30), &"a".repeat(29)));
    }

    #[test]
    fn names_with_and_without_what_is_around_them() {
        assert!(matches_end("queue.c", "/home/me/src/queue.c", "/"));
        assert!(matches_end("src/queue.c", "/home/me/src/queue.c", "/"));
        assert!(matches_end("/home/*", "/home/me/src/queue.c", "/"));
        assert!(!matches_end("ueue.c", "/home/me/src/queue.c", "/"));
        assert!(matches_end("take", "Pool::take", "::") && matches_end("Pool::*", "my::Pool::take", "::"));
        assert!(!matches_end("ake", "Pool::take", "::"));
    }
}
