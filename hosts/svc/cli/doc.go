// Package cli makes svc of its commands. Each is a function that makes a cobra.Command; a package below this one has those of a
// noun, and run.go names them all.
//
// A command checks its arguments, asks where it has to, calls the API through adapters/apiclient, and shows the answer. What all
// commands share stands in package app.
package cli
