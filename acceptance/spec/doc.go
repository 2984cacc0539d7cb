// Package spec tells, in the words of the people who use the service, what the service does for them. Each scenario is a short
// story of an operator, of customers and of strangers. It says nothing of how the service is built: the drivers do (package
// driver), and the table in matrix_test.go says which scenario runs on which of them.
package spec
