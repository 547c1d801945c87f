//! The whole story: channels, codes, jobs that end in every way, a power cut in the middle.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::CHANNELS;
use crate::kit::client::text;
use crate::kit::documents::{html, slow_html};
use crate::kit::post::{Call, Mail, Post, Receiver, created, email};
use crate::kit::{Client, File, custom_workflow, partition_only, until};

const ALL: [&str; 5] = [
    "job.scheduled",
    "job.in_progress",
    "job.completed",
    "job.stopped",
    "job.failed",
];

/// Events as `(type, job)`.
type Events = BTreeSet<(String, String)>;

/// The events of mails but codes; each must have come under one id.
fn mailed(mails: &[Mail]) -> Events {
    let mut ids = BTreeSet::new();
    let events = mails.iter().filter(|mail| mail.event() != "channel.verification");
    let first = events.filter(|mail| ids.insert(mail.header("message-id")));
    let found = first.map(|mail| {
        let text = mail.text();
        let job = text.lines().find_map(|line| line.strip_prefix("Job: "));
        (
            mail.event(),
            job.unwrap_or_else(|| panic!("no job in {text}")).to_owned(),
        )
    });
    let found: Vec<_> = found.collect();
    let set: Events = found.iter().cloned().collect();
    assert_eq!(set.len(), found.len(), "an event came under two ids: {found:?}");
    set
}

/// The same for webhooks.
fn called(calls: &[Call], secret: &str) -> Events {
    let mut ids = BTreeSet::new();
    let mut found = Vec::new();
    for call in calls {
        assert!(call.verifies(secret), "{call:?}");
        let body = call.json();
        if ids.insert(call.header("webhook-id").to_owned()) {
            found.push((
                text(&body["type"]).to_owned(),
                text(&body["data"]["job"]["id"]).to_owned(),
            ));
        }
    }
    let set: Events = found.iter().cloned().collect();
    assert_eq!(set.len(), found.len(), "an event came under two ids: {found:?}");
    set
}

fn events(job: &str, types: &[&str]) -> Events {
    types.iter().map(|kind| ((*kind).to_owned(), job.to_owned())).collect()
}

async fn stopped(client: &Client) -> String {
    let job = client
        .created(&partition_only(), &[File::new("slow.html", slow_html())])
        .await;
    let id = text(&job["id"]).to_owned();
    until("the job to run", async || {
        (client.get(&format!("/jobs/{id}")).await.ok()["status"] == "IN_PROGRESS").then_some(())
    })
    .await;
    client.post(&format!("/jobs/{id}/cancel")).await.ok();
    assert_eq!(client.ended(&id).await["status"], "STOPPED");
    id
}

#[tokio::test]
async fn n01_n02_n13_people_and_programs_hear_exactly_what_they_chose_and_a_power_cut_loses_nothing() {
    let (mut post, hook) = (Post::start(), Receiver::start().await);
    let mut server = post.server(&[("ENGINE__MAX_ATTEMPTS", "100")]).await;
    let client = server.client();
    let workflow = client.workflow(&custom_workflow("Invoices every hour")).await;
    let workflow = text(&workflow["id"]).to_owned();
    let below = format!("/api/v1/workflows/{workflow}/notifications/channels");

    // The body of the interface's description, and the answer to it.
    let body = json!({"channel_type": "email", "description": "Ana on call",
        "event_types": ["job.completed", "job.stopped", "job.failed"],
        "email_config": {"recipient_email": "ana@example.org"}});
    let ana = created(&client, CHANNELS, &body).await;
    assert_eq!(
        (&ana["enabled"], &ana["channel_type"]),
        (&json!(false), &json!("email"))
    );
    let code = post.mail("ana@example.org", 1).await.code();
    let answer = client
        .post_json(
            &format!("{CHANNELS}/{}/verify", text(&ana["id"])),
            &json!({"code": code}),
        )
        .await;
    assert_eq!((answer.status, answer.bytes.len()), (204, 0));
    post.verified(
        &client,
        &below,
        "bo@example.org",
        &["job.scheduled", "job.in_progress", "job.completed"],
    )
    .await;
    created(&client, CHANNELS, &email("eve@example.org", &ALL)).await;
    let hooked = json!({"channel_type": "webhook", "event_types": ALL, "url": hook.url()});
    let webhook = created(&client, CHANNELS, &hooked).await;
    let secret = text(&webhook["secret"]).to_owned();

    let done = client
        .run(&partition_only(), &[File::new("a.html", html("done", 3))])
        .await;
    assert_eq!(done["status"], "COMPLETED");
    let failed = client
        .run(
            &partition_only(),
            &[File::new("broken.pdf", b"%PDF-1.7 nothing".to_vec())],
        )
        .await;
    assert_eq!(failed["status"], "FAILED");
    let stopped = stopped(&client).await;

    // Nobody takes mail now; a job ends, its mails wait, others are under way: and the power goes.
    post.stop();
    let waiting = client
        .run(&partition_only(), &[File::new("b.html", html("waits", 3))])
        .await;
    let run = client
        .send(client.run_request(&workflow, &[File::new("c.html", html("cut", 900))]))
        .await;
    assert_eq!(run.status, 202, "{run}");
    let cut = text(&run.json()["id"]).to_owned();
    server.kill();
    post.start_again();
    let server = server.restart().await;
    let client = server.client();
    assert_eq!(client.ended(&cut).await["status"], "COMPLETED");

    let id = |job: &Value| text(&job["id"]).to_owned();
    let begun = ["job.scheduled", "job.in_progress"];
    let mut everything = Events::new();
    for (job, end) in [
        (&id(&done), "job.completed"),
        (&id(&failed), "job.failed"),
        (&stopped, "job.stopped"),
        (&id(&waiting), "job.completed"),
        (&cut, "job.completed"),
    ] {
        everything.extend(events(job, &begun));
        everything.extend(events(job, &[end]));
    }
    let of_ana: Events = everything
        .iter()
        .filter(|(kind, _)| !begun.contains(&kind.as_str()))
        .cloned()
        .collect();
    let of_bo = events(&cut, &["job.scheduled", "job.in_progress", "job.completed"]);
    until("every mail and call", async || {
        let all = post.mails_to("ana@example.org").len() > of_ana.len()
            && post.mails_to("bo@example.org").len() > of_bo.len()
            && hook.calls().len() >= everything.len();
        all.then_some(())
    })
    .await;
    // What should not come would come now.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(mailed(&post.mails_to("ana@example.org")), of_ana);
    assert_eq!(mailed(&post.mails_to("bo@example.org")), of_bo);
    assert_eq!(
        mailed(&post.mails_to("eve@example.org")),
        Events::new(),
        "she never confirmed"
    );
    assert_eq!(called(&hook.calls(), &secret), everything);

    // Events of a job are numbered, so that a receiver can drop what comes late.
    for job in [&id(&done), &cut] {
        let mut told: Vec<(i64, String)> = Vec::new();
        for body in hook.calls().iter().map(Call::json) {
            if body["data"]["job"]["id"] == **job {
                let sequence = body["data"]["job"]["sequence"].as_i64().expect("a number");
                told.push((sequence, text(&body["type"]).to_owned()));
            }
        }
        told.sort();
        told.dedup();
        let types: Vec<&str> = told.iter().map(|(_, kind)| kind.as_str()).collect();
        assert_eq!(types, ["job.scheduled", "job.in_progress", "job.completed"], "{told:?}");
    }
    let mails = post.mails_to("ana@example.org");
    let failure = mails
        .iter()
        .find(|mail| mail.event() == "job.failed")
        .expect("the failure's mail");
    assert!(failure.text().contains("broken.pdf"), "{}", failure.text());
    let failure = failure.text();
    assert!(
        failure.contains(&format!("{}/api/v1/jobs/{}", crate::kit::post::PUBLIC, id(&failed))),
        "{failure}"
    );
}
