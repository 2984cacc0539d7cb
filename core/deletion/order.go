package deletion

// Ordered is what an operator orders of the deletion of a database.
type Ordered struct {
	By, Reason string
	// Bare has it deleted without a deletion backup: its owner cannot recover it.
	Bare bool
	// Isolated says that its server has it out of service already: no backup is made, and it fails where that is not so.
	Isolated bool
}
