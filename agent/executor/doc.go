// Package executor carries out the commands that the ledger has admitted.
package executor
