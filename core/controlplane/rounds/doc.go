// Package rounds does the periodic work that capabilities register: each task in rounds of its own, so that none waits for
// another, and what asks servers for each server and account on its own.
//
// Any number of processes may do the same rounds concurrently: all of the work can be done twice.
package rounds
