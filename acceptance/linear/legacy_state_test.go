package linear

import "github.com/pgherd/pgherd/core/role"

// overlayState is how far the opt-in of a database with a single login has come.
type overlayState struct {
	status overlayStatus
	id     int8  // 0: no answer has told it
	set    int16 // generation of the role set
}

type overlayStatus int8

const (
	noOverlay overlayStatus = iota
	overlayReserved
	overlayActive
)

// serving is what becomes of the database as a whole.
type serving int8

const (
	serves   serving = iota
	underWay         // an operation is, of which nobody knows how far it has come: a call may be refused or not
	stopped
)

// legacySteps go on with steps, for databases with a single login.
var legacySteps = map[event]func(s state, f fact) []state{
	optInBegun: func(s state, _ fact) []state {
		if s.overlay.status == noOverlay {
			s.generation++
			s.overlay.status, s.overlay.set = overlayReserved, s.generation
			return only(s, s.database != stopped)
		}
		return only(s, s.overlay.status == overlayActive || s.database != stopped)
	},
	optInNo: func(s state, _ fact) []state {
		return only(s, s.overlay.status != overlayActive && s.database != serves)
	},
	optedIn: func(s state, f fact) []state {
		if s.overlay.id == 0 {
			s.overlay.id = f.shown.id
		}
		stands := s.overlay.status == overlayActive || s.overlay.status == overlayReserved && !f.yes
		return only(s, stands && s.overlay.id == f.shown.id && s.overlay.set == f.shown.set)
	},
	// A grant that is missing keeps the server from opening the role, so it has not.
	grantMissing: func(s state, f fact) []state {
		ordinal := s.byID(f.shown.id)
		return only(s, ordinal != 0 && s.role(ordinal).shutOut && s.role(ordinal).letsIn == 0)
	},
	reconciled: func(s state, f fact) []state { return only(s, s.shows(f.shown)) },
	connects: func(s state, f fact) []state {
		ordinal := s.byID(f.shown.id)
		if ordinal == 0 {
			return nil
		}
		s.role(ordinal).shutOut = !f.yes
		return only(s, true)
	},
	// A session stays when the owner takes CONNECT back.
	held: func(s state, f fact) []state {
		c := s.passwords[f.password]
		return only(s, c.ordinal != 0 && s.role(c.ordinal).letsIn == c.generation && s.database != stopped)
	},
	disturbed: func(s state, _ fact) []state {
		s.database = underWay
		return only(s, true)
	},
	restored: func(s state, _ fact) []state { return only(s, s.database == underWay) },
	rested: func(s state, f fact) []state {
		s.database = serves
		if !f.yes {
			s.database = stopped
		}
		return only(s, true)
	},
}

// serves: what opens or makes logins may begin.
func (s *state) serves() bool { return s.calm() && s.database != stopped }

// roomForRole: a database with a single login has opted in, and has at most three roles, revoked ones counted.
func (s *state) roomForRole() bool {
	if !s.legacy {
		return true
	}
	living := 0
	for i := int8(1); i <= s.made; i++ {
		if s.role(i).status != role.Removed {
			living++
		}
	}
	return s.overlay.status == overlayActive && living < 3
}

// knocks: a log-in with a password gets in, or does not.
func (s *state) knocks(c credential, in bool) bool {
	r := s.role(c.ordinal)
	opens := r.letsIn == c.generation && !r.shutOut
	switch s.database {
	case serves:
		return opens == in
	case stopped:
		return !in
	}
	return opens || !in
}
