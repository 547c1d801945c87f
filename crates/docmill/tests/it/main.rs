//! Tests of the whole program: the real binary, real files, real connections.

mod access;
mod chain;
mod cli;
mod clock;
mod connectors;
mod corpus;
mod crash;
mod documentation;
mod drain;
mod files;
mod forms;
mod jobs;
mod kit;
mod limits;
mod names;
mod outcomes;
mod pages;
mod paths;
mod requests;
mod run;
mod runs;
mod schedules;
mod secrets;
mod slow;
mod workflow_list;
mod workflows;
