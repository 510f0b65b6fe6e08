"""Control of a running job: `ControlServer`, its commands, and the API between the run and other threads."""
