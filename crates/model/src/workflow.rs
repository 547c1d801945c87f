//! Workflows: stored chains with sources, destinations and a schedule.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::words::text_enum;

text_enum! {
    /// Whether a workflow may run.
    WorkflowState {
        /// It runs by schedule and by hand.
        Active = "active",
        /// It does not run.
        Inactive = "inactive",
    }
}

text_enum! {
    /// What kind of definition a workflow was made from.
    WorkflowType {
        /// Kept for existing clients; runs like `custom`.
        Basic = "basic",
        /// Kept for existing clients; runs like `custom`.
        Advanced = "advanced",
        /// Kept for existing clients; runs like `custom`.
        Platinum = "platinum",
        /// Nodes given by the client.
        Custom = "custom",
        /// Nodes of a template.
        Template = "template",
    }
}

text_enum! {
    /// What a firing does while the workflow's last run has not ended.
    Overlap {
        /// Nothing; the firing is recorded as skipped.
        Skip = "skip",
        /// Starts another run.
        Allow = "allow",
    }
}

/// When a workflow runs by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Five fields of cron: minute, hour, day of month, month, day of week.
    pub cron: String,
    /// IANA name of the time zone the fields are read in.
    pub timezone: String,
    /// What happens when the last run has not ended.
    pub overlap: Overlap,
}

/// Longest slug.
pub const MAX_SLUG: usize = 63;

/// Whether `text` is a slug: 1 to 63 of `a-z`, `0-9` and single inner hyphens. What reads as a UUID is none: it
/// stands for an id wherever a slug may stand too.
pub fn is_slug(text: &str) -> bool {
    (1..=MAX_SLUG).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--")
        && Uuid::try_parse(text).is_err()
}

/// A slug made from a name; `fallback` (a slug) when the name holds nothing a slug can.
pub fn slug_of(name: &str, fallback: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= MAX_SLUG {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    match slug {
        "" => fallback.to_owned(),
        slug if Uuid::try_parse(slug).is_ok() => format!("{fallback}-{slug}"),
        slug => slug.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        for good in ["a", "7", "a-b-c", &"x".repeat(63)] {
            assert!(is_slug(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a--b", "A", "ä", "a b", &"x".repeat(64)] {
            assert!(!is_slug(bad), "{bad}");
        }
        assert_eq!(slug_of("My  First: Workflow!", "workflow"), "my-first-workflow");
        let id = "01a1feb6-f3a6-71a9-bb9e-3a692dee403a";
        assert!(!is_slug(id) && !is_slug(&id.replace('-', "")));
        assert_eq!(slug_of(id, "destination"), format!("destination-{id}"));
        assert!(is_slug(&slug_of(id, "destination")));
        assert_eq!(slug_of("日本語", "workflow"), "workflow");
        assert!(is_slug(&slug_of(&"long name ".repeat(20), "workflow")));
    }
}
