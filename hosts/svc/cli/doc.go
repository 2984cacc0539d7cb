// Package cli holds the commands of svc. Each is a function that makes a cobra.Command; run.go names them all.
//
// A command checks its arguments, asks where it has to, calls the API through adapters/apiclient, and shows the answer. What all
// commands share stands in app: where the API is, how long to wait, and how to print. Exit statuses are those of problem.go.
package cli
