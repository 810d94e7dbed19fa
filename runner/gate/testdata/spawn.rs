// Starts a program and says how it ended and what it wrote to its standard error.
use std::process::Command;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match Command::new(&args[1]).args(&args[2..]).output() {
        Ok(o) => print!("{:?} {}", o.status.code(), String::from_utf8_lossy(&o.stderr)),
        Err(e) => println!("{}", e),
    }
}
