// Command svc is the command-line client of the service: it calls the control plane API, and nothing else.
package main

import "github.com/pgherd/pgherd/hosts/svc/cli"

func main() { cli.Main() }
