//! One router, three mounts: `/jobs`, `/api/v1/jobs` and `/api/v1/api/v1/jobs`, with and without a
//! slash at the end, are one path, without any redirect.
//!
//! The third spelling comes from clients whose base URL already ends in `/api/v1`.

/// The path the router knows, for a path as requested.
pub(crate) fn canonical(path: &str) -> &str {
    let mut path = path;
    for _ in 0..2 {
        match path.strip_prefix("/api/v1") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => path = rest,
            _ => break,
        }
    }
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    if trimmed.is_empty() { "/" } else { trimmed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_one_path() {
        for path in [
            "/jobs",
            "/jobs/",
            "/api/v1/jobs",
            "/api/v1/jobs/",
            "/api/v1/api/v1/jobs/",
        ] {
            assert_eq!(canonical(path), "/jobs");
        }
        assert_eq!(canonical("/"), "/");
        assert_eq!(canonical("/api/v1"), "/");
        assert_eq!(canonical("/api/v10/jobs"), "/api/v10/jobs");
        assert_eq!(canonical("/api/v1/api/v1/api/v1/jobs"), "/api/v1/jobs");
    }
}
