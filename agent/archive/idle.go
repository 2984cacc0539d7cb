package archive

// Idle reports whether the archive is ready, and no server runs beside the live one or is about to.
func (a *Archive) Idle() bool { return a.ofServer() != nil && len(a.sides) == 0 }
