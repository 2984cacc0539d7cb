package mails

// The crash points of mails.
const (
	CrashClaimed = "mail.claimed" // leased, nothing sent
	CrashSent    = "mail.sent"    // the mail server has taken it, outcome not committed
)

// CrashPoints lists them.
var CrashPoints = []string{CrashClaimed, CrashSent}
