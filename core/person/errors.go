package person

import "github.com/pgherd/pgherd/core/fault"

// ErrNoSession is the same for a session that is missing, waits for its factor, or has ended.
func ErrNoSession() error { return fault.New(fault.Unauthorized, "log in first") }

// ErrNoReset is the same for a link that is unknown, used, replaced or too old.
func ErrNoReset() error {
	return fault.New(fault.Unauthorized, "the link does not work any more: ask for another one")
}

// ErrLogIn is the same for every log-in that fails, whatever was wrong.
func ErrLogIn() error {
	return fault.New(fault.Unauthorized, "the address, the password or the code is wrong")
}

// ErrPasskey is the same for every passkey that is refused, whatever was wrong.
func ErrPasskey() error {
	return fault.New(fault.Unauthorized, "the passkey was not accepted: try again")
}

// ErrSignOn is the same for every sign-on that is refused, whatever was wrong.
func ErrSignOn() error {
	return fault.New(fault.Unauthorized, "the sign-on was not accepted: try again")
}

// ErrStranger is the same for somebody whose address is no user's, and for somebody whose address is that of a user who is
// another person to the issuer.
func ErrStranger() error {
	return fault.New(fault.Forbidden, "nobody with your mail address is a user here: ask for an invitation first")
}
