package server

import (
	"fmt"
	"strings"

	"github.com/pgherd/pgherd/core/command"
)

// judgePrograms names what is open in the programs of a server, also in those that an operator has accepted, and the programs of
// which nothing is known.
func judgePrograms(list []command.Program) Finding {
	var open, accepted, unseen []string
	for _, p := range list {
		switch {
		case p.Version == "":
			unseen = append(unseen, p.Name)
		case p.BelowFloor && p.Accepted:
			accepted = append(accepted, openIn(p))
		case p.BelowFloor:
			open = append(open, openIn(p))
		}
	}
	f := fine(CheckPrograms, "")
	var found []string
	if len(open) > 0 {
		f.Verdict, f.Do = Notice, "update them, or accept them by --accept-versions"
		found = append(found, open...)
	}
	if len(accepted) > 0 {
		found = append(found, "accepted by --accept-versions, so open unless that build mends it: "+strings.Join(accepted, "; "))
	}
	if len(unseen) > 0 {
		found = append(found, strings.Join(unseen, ", ")+" did not say a version yet")
	}
	if f.Found = strings.Join(found, "; "); f.Found == "" {
		f.Found = "no known holes"
	}
	return f
}

// openIn names what a version leaves open.
func openIn(p command.Program) string {
	return fmt.Sprintf("%s is below %s, with %s", p.Version, p.Floor, strings.Join(p.Holes, ", "))
}
