//! Slugs: the short names clients choose, or get made from the full name.

use docmill_model::workflow::{MAX_SLUG, slug_of};
use sqlx::SqliteConnection;

use crate::{Result, StoreError};

/// Whether a slug is taken: statements that take the workspace, the slug and, for connectors, the role.
pub(super) const CONNECTOR_KEY: &str =
    "SELECT EXISTS (SELECT 1 FROM connectors WHERE workspace_id = $1 AND key = $2 AND role = $3)";
pub(super) const WORKFLOW_KEY: &str =
    "SELECT EXISTS (SELECT 1 FROM workflows WHERE workspace_id = $1 AND key = $2 AND deleted = 0 AND $3 <> '')";

/// The slug an object gets: the one asked for, unless it is taken, or one that is free, made from its name.
pub(super) async fn assign(
    db: &mut SqliteConnection,
    taken: &'static str,
    workspace: &str,
    role: &str,
    asked: Option<&str>,
    name: &str,
) -> Result<String> {
    let mut is_taken = async |key: &str| -> Result<bool> {
        let query = sqlx::query_scalar::<_, bool>(taken)
            .bind(workspace)
            .bind(key)
            .bind(role);
        Ok(query.fetch_one(&mut *db).await?)
    };
    if let Some(key) = asked {
        return match is_taken(key).await? {
            true => Err(StoreError::KeyTaken(key.to_owned())),
            false => Ok(key.to_owned()),
        };
    }
    let base = slug_of(name, role);
    if !is_taken(&base).await? {
        return Ok(base);
    }
    // Thousands may have the same name, so the first free number is closed in on: `below` is taken and
    // `free` is not. It is the smallest free one unless numbers in between were given up.
    let (mut below, mut free) = (1u64, 2u64);
    while is_taken(&numbered(&base, free)).await? {
        (below, free) = (free, free.saturating_mul(2));
    }
    while free - below > 1 {
        let middle = below + (free - below) / 2;
        match is_taken(&numbered(&base, middle)).await? {
            true => below = middle,
            false => free = middle,
        }
    }
    Ok(numbered(&base, free))
}

/// `base-n`, with the base cut so that a slug results.
fn numbered(base: &str, n: u64) -> String {
    let end = format!("-{n}");
    let base: String = base.chars().take(MAX_SLUG.saturating_sub(end.len())).collect();
    format!("{}{end}", base.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use docmill_model::workflow::is_slug;

    use super::*;

    #[test]
    fn numbered_slugs_are_slugs() {
        assert_eq!(numbered("a", 2), "a-2");
        for n in [2, 10, 12_345] {
            for base in [
                "x".repeat(63),
                format!("{}-y", "x".repeat(60)),
                format!("{}-yy", "x".repeat(58)),
            ] {
                let slug = numbered(&base, n);
                assert!(is_slug(&slug) && slug.ends_with(&format!("-{n}")), "{slug}");
            }
        }
    }
}
