//! Verification codes: sending them within budgets, and trying them.

use docmill_model::channel::{ChannelId, DeliveryKind};
use docmill_model::ids::DeliveryId;
use docmill_model::time::{Micros, SECOND};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};
use subtle::ConstantTimeEq;

use super::SqliteStore;
use super::channels::find;
use super::rows::id;
use crate::{ChannelRef, CodeBound, CodeHash, CodeIssue, CodeLimits, CodeRefusal, CodeTry, NewCode, Result};

/// What budgets are for.
const DAY: Micros = 24 * 3_600 * SECOND;

pub(super) const CODE: &str = "SELECT hash, tries, expires_at FROM channel_codes WHERE channel_id = $1";
pub(super) const BUDGET: &str = "SELECT since, used FROM code_budgets WHERE subject = $1 AND what = $2";
/// Ends the mails of a channel's codes and wipes the codes in them, also where one is being sent.
pub(super) const VOID_MAILS: &str = "UPDATE deliveries
     SET state = 'cancelled', sealed = NULL, lease_until = NULL, ended_at = $2, last_error = $3
     WHERE channel_id = $1 AND sealed IS NOT NULL";
pub(super) const VOID_EXPIRED: &str = "UPDATE deliveries
     SET state = 'cancelled', sealed = NULL, lease_until = NULL, ended_at = $1, last_error = 'the code has expired'
     WHERE sealed IS NOT NULL AND channel_id IN
         (SELECT channel_id FROM channel_codes WHERE expires_at <= $1)";
pub(super) const FORGET_CODES: &str = "DELETE FROM channel_codes WHERE expires_at <= $1";
pub(super) const FORGET_BUDGETS: &str = "DELETE FROM code_budgets WHERE since <= $1";

/// Whose uses a budget counts.
struct Subjects {
    channel: String,
    mailbox: String,
    workspace: String,
}

impl Subjects {
    fn new(workspace: &str, channel: ChannelId, mailbox: &str) -> Self {
        Self {
            channel: format!("channel {channel}"),
            mailbox: format!("mailbox {workspace} {mailbox}"),
            workspace: format!("workspace {workspace}"),
        }
    }
}

/// A code's way out: which channel it is for, and which mailbox is sent it.
pub(super) struct Recipient<'a> {
    pub(super) workspace: &'a str,
    pub(super) channel: ChannelId,
    pub(super) mailbox: &'a str,
}

impl SqliteStore {
    pub(super) async fn send_code(
        &self,
        channel: ChannelRef,
        code: NewCode,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<Option<CodeIssue>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let Some(row) = find(db, channel).await? else {
                        return Ok(None);
                    };
                    if is_verified(&row)? {
                        return Ok(Some(CodeIssue::AlreadyVerified));
                    }
                    let recipient = Recipient {
                        workspace: row.try_get("workspace_id")?,
                        channel: channel.id,
                        mailbox: row.try_get("receiver")?,
                    };
                    Ok(Some(match issue(db, &recipient, &code, limits, now).await? {
                        Some(refusal) => CodeIssue::Refused(refusal),
                        None => CodeIssue::Issued,
                    }))
                })
            })
            .await
    }

    pub(super) async fn compare_code(
        &self,
        channel: ChannelRef,
        presented: CodeHash,
        limits: CodeLimits,
        now: Micros,
    ) -> Result<Option<CodeTry>> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let Some(row) = find(db, channel).await? else {
                        return Ok(None);
                    };
                    if is_verified(&row)? {
                        return Ok(Some(CodeTry::AlreadyVerified));
                    }
                    attempt(db, &row, presented, limits, now).await.map(Some)
                })
            })
            .await
    }

    pub(super) async fn forget_codes(&self, now: Micros) -> Result<u64> {
        self.writer
            .write(move |db| {
                Box::pin(async move {
                    let mut forgotten = 0;
                    // Used-up and expired codes are told apart for a day, and hold their channel's cool-down.
                    for (sql, at) in [
                        (VOID_EXPIRED, now),
                        (FORGET_CODES, now - DAY),
                        (FORGET_BUDGETS, now - DAY),
                    ] {
                        forgotten += sqlx::query(sql).bind(at).execute(&mut *db).await?.rows_affected();
                    }
                    Ok(forgotten)
                })
            })
            .await
    }
}

fn is_verified(row: &SqliteRow) -> Result<bool> {
    Ok(row.try_get::<Option<Micros>, _>("verified_at")?.is_some())
}

/// One try of an unverified channel's code. The writer runs one operation after the other, so nothing comes
/// between counting and comparing, and what is counted is durable before anybody hears of it.
async fn attempt(
    db: &mut SqliteConnection,
    channel: &SqliteRow,
    presented: CodeHash,
    limits: CodeLimits,
    now: Micros,
) -> Result<CodeTry> {
    let channel_id: ChannelId = id(channel, "id")?;
    let workspace: &str = channel.try_get("workspace_id")?;
    let subjects = Subjects::new(workspace, channel_id, channel.try_get("receiver")?);
    let code = sqlx::query(CODE).bind(channel_id.to_string());
    let Some(code) = code.fetch_optional(&mut *db).await? else {
        return Ok(CodeTry::Expired);
    };
    let tries: u32 = code.try_get("tries")?;
    let wait = wrong_wait(db, &subjects, limits, now).await?;
    if tries >= limits.tries || wait > 0 {
        return Ok(CodeTry::Exceeded { wait });
    }
    if code.try_get::<Micros, _>("expires_at")? <= now {
        return Ok(CodeTry::Expired);
    }
    sqlx::query("UPDATE channel_codes SET tries = tries + 1 WHERE channel_id = $1")
        .bind(channel_id.to_string())
        .execute(&mut *db)
        .await?;
    let stored: &[u8] = code.try_get("hash")?;
    if !bool::from(stored.ct_eq(&presented.0)) {
        for subject in [&subjects.channel, &subjects.mailbox] {
            charge(db, subject, "wrong", now).await?;
        }
        let left = limits.tries.saturating_sub(tries + 1);
        return Ok(CodeTry::Wrong { left });
    }
    sqlx::query("UPDATE channels SET verified_at = $2, bounced_at = NULL, bounce_reason = NULL WHERE id = $1")
        .bind(channel_id.to_string())
        .bind(now)
        .execute(&mut *db)
        .await?;
    void(db, channel_id, "the code was used", now).await?;
    Ok(CodeTry::Verified)
}

/// Makes a code the channel's only one and hands it to the outbox, or tells why not.
pub(super) async fn issue(
    db: &mut SqliteConnection,
    to: &Recipient<'_>,
    code: &NewCode,
    limits: CodeLimits,
    now: Micros,
) -> Result<Option<CodeRefusal>> {
    let subjects = Subjects::new(to.workspace, to.channel, to.mailbox);
    if let Some(refusal) = refusal(db, to.channel, &subjects, limits, now).await? {
        return Ok(Some(refusal));
    }
    for subject in [&subjects.channel, &subjects.mailbox, &subjects.workspace] {
        charge(db, subject, "code", now).await?;
    }
    void(db, to.channel, "a new code was sent", now).await?;
    sqlx::query("INSERT INTO channel_codes (channel_id, hash, issued_at, expires_at) VALUES ($1, $2, $3, $4)")
        .bind(to.channel.to_string())
        .bind(code.hash.0.as_slice())
        .bind(now)
        .bind(now.saturating_add(limits.lifetime))
        .execute(&mut *db)
        .await?;
    sqlx::query(
        "INSERT INTO deliveries (id, workspace_id, channel_id, kind, lane, receiver, sealed, not_before, created_at)
         VALUES ($1, $2, $3, $4, 'email', $5, $6, 0, $7)",
    )
    .bind(DeliveryId::new().to_string())
    .bind(to.workspace)
    .bind(to.channel.to_string())
    .bind(DeliveryKind::Code.as_str())
    .bind(to.mailbox)
    .bind(code.sealed.as_slice())
    .bind(now)
    .execute(db)
    .await?;
    Ok(None)
}

/// Forgets a channel's code, in the outbox too.
pub(super) async fn void(db: &mut SqliteConnection, channel: ChannelId, reason: &str, now: Micros) -> Result<()> {
    let channel = channel.to_string();
    sqlx::query(VOID_MAILS)
        .bind(&channel)
        .bind(now)
        .bind(reason)
        .execute(&mut *db)
        .await?;
    sqlx::query("DELETE FROM channel_codes WHERE channel_id = $1")
        .bind(&channel)
        .execute(db)
        .await?;
    Ok(())
}

async fn refusal(
    db: &mut SqliteConnection,
    channel: ChannelId,
    subjects: &Subjects,
    limits: CodeLimits,
    now: Micros,
) -> Result<Option<CodeRefusal>> {
    let refuse = |bound, wait| Ok(Some(CodeRefusal { bound, wait }));
    let wrong = wrong_wait(db, subjects, limits, now).await?;
    if wrong > 0 {
        return refuse(CodeBound::WrongTries, wrong);
    }
    let bounds = [
        (CodeBound::Channel, &subjects.channel, limits.codes_a_day),
        (CodeBound::Mailbox, &subjects.mailbox, limits.codes_a_day),
        (CodeBound::Workspace, &subjects.workspace, limits.workspace_codes_a_day),
    ];
    for (bound, subject, most) in bounds {
        let wait = wait(db, subject, "code", most, now).await?;
        if wait > 0 {
            return refuse(bound, wait);
        }
    }
    let issued = sqlx::query_scalar("SELECT issued_at FROM channel_codes WHERE channel_id = $1");
    let issued: Option<Micros> = issued.bind(channel.to_string()).fetch_optional(db).await?;
    match issued {
        // An instant in the future can only come from a clock that was set back since.
        Some(at) if at <= now && now - at < limits.cool_down => {
            refuse(CodeBound::CoolDown, limits.cool_down - (now - at))
        }
        _ => Ok(None),
    }
}

/// How long no code may be tried, because the day's wrong tries are used up; 0 when one may.
async fn wrong_wait(db: &mut SqliteConnection, subjects: &Subjects, limits: CodeLimits, now: Micros) -> Result<Micros> {
    let channel = wait(db, &subjects.channel, "wrong", limits.wrong_a_day, now).await?;
    let mailbox = wait(db, &subjects.mailbox, "wrong", limits.wrong_a_day, now).await?;
    Ok(channel.max(mailbox))
}

/// How long a budget is used up; 0 when it is not.
async fn wait(db: &mut SqliteConnection, subject: &str, what: &str, most: u32, now: Micros) -> Result<Micros> {
    let budget = sqlx::query(BUDGET).bind(subject).bind(what);
    let Some(budget) = budget.fetch_optional(db).await? else {
        return Ok(if most == 0 { DAY } else { 0 });
    };
    let (since, used): (Micros, u32) = (budget.try_get("since")?, budget.try_get("used")?);
    let over = since <= now - DAY || since > now;
    Ok(match over {
        false if used >= most => since + DAY - now,
        true if most == 0 => DAY,
        _ => 0,
    })
}

async fn charge(db: &mut SqliteConnection, subject: &str, what: &str, now: Micros) -> Result<()> {
    sqlx::query(
        "INSERT INTO code_budgets (subject, what, since, used) VALUES ($1, $2, $3, 1)
         ON CONFLICT (subject, what) DO UPDATE SET
             used = CASE WHEN since > $3 - $4 AND since <= $3 THEN used + 1 ELSE 1 END,
             since = CASE WHEN since > $3 - $4 AND since <= $3 THEN since ELSE $3 END",
    )
    .bind(subject)
    .bind(what)
    .bind(now)
    .bind(DAY)
    .execute(db)
    .await?;
    Ok(())
}
