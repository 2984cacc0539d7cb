package driver

// StopStack stub
func StopStack() {}
