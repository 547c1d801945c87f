//! Measures what one child costs: `cargo run --release -p docmill-sandbox --example spawn_cost [RUNS]`.

use std::time::Instant;

use docmill_sandbox::{CancelFlag, Level, Sandbox, SandboxConfig, child_main};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("__child") {
        child_main(|request, answer| answer.done(&request.input));
    }
    let runs: u32 = argument.as_deref().unwrap_or("500").parse()?;
    let mut config = SandboxConfig::current_exe(["__child"])?;
    config.require = Level::ProcessOnly;
    let sandbox = Sandbox::new(config)?;
    println!("{}", serde_json::to_string_pretty(sandbox.report())?);
    let cancel = CancelFlag::new();
    let (mut walls, mut cpu, mut rss) = (Vec::new(), std::time::Duration::ZERO, 0);
    let start = Instant::now();
    for _ in 0..runs {
        let usage = sandbox.run(b"", &mut b"hello".as_slice(), 5, &cancel, &mut drop)?;
        walls.push(usage.wall);
        cpu += usage.cpu;
        rss = rss.max(usage.max_rss);
    }
    let total = start.elapsed();
    walls.sort();
    let at = |share: usize| walls.get(walls.len() * share / 100).copied().unwrap_or_default();
    println!("{runs} runs, {:.0} runs/s", f64::from(runs) / total.as_secs_f64());
    println!(
        "wall: median {:?}, 95 % {:?}; cpu of the child {:?}",
        at(50),
        at(95),
        cpu / runs.max(1)
    );
    println!("largest resident set: {} KiB", rss >> 10);
    Ok(())
}
