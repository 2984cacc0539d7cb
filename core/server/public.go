package server

import (
	"net/netip"
	"time"
)

// judgePublic is about what customers find. Which CA they trust is not known here.
func judgePublic(r Reach, now time.Time) Finding {
	f := judgeListener(r, now)
	if r.Answered() {
		f.Found += "; looked at " + r.At.String()
	}
	if f.Verdict == OK && onlyHere(r.At.Addr()) {
		f.Verdict, f.Setting, f.Found = Notice, "publicHost", f.Found+", which only this machine reaches"
		f.Do = "see that customers find another address by that name, or set the public host to one that they reach"
	}
	return f
}

// onlyHere reports whether an address leads other machines elsewhere, or nowhere.
func onlyHere(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast()
}

func judgeListener(r Reach, now time.Time) Finding {
	f := Finding{Check: CheckPublic, Verdict: Wrong, Setting: "publicHost"}
	switch r.Trouble {
	case "":
		f = judgeEnd(CheckPublic, r, now)
		f.Found = r.Address + " has TLS; its certificate " + f.Found
	case UnknownCA:
		f = judgeEnd(CheckPublic, r, now)
		f.Found = r.Address + " has TLS, by a CA that customers must be given; its certificate " + f.Found
	case OtherName:
		f.Found = "the certificate of " + r.Address + " is for " + orNothing(r.Names)
		f.Do = "set the public host to a name that it has, or have one made for this name"
	case OutOfDate:
		f.Found = "the certificate of " + r.Address + " is out of date: it ends " + r.Ends.UTC().Format(time.DateOnly)
		f.Do = "renew PgBouncer's certificate"
	case NoSuchHost:
		f.Verdict, f.Found = Notice, "the name in "+r.Address+" is unknown here"
		f.Do = "see that customers find it: correct the public host, or enter the name into DNS"
	case NoTLS:
		f.Found, f.Do = r.Address+" does not offer TLS", "see that PgBouncer listens there, with the agent's pgbouncer.ini"
	case Refused, Silent, NoCA, Sealed, WrongSecret, NoAgent, Broken:
		f.Verdict, f.Found = Notice, r.Address+" cannot be reached from here: "+r.Why
		f.Do = "see that PgBouncer listens there and customers get through; this machine need not"
	}
	return f
}
