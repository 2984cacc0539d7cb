package linear

import "github.com/pgherd/pgherd/core/role"

// The limits of a history. The keys that its clients use keep within them.
const (
	maxRoles     = 8
	maxChanges   = 24
	maxPasswords = 48
)

// state is what one database's additional roles are, as the spec tells it: nothing here is taken from the code under test but
// the names of statuses and kinds. It is comparable. Names, keys, IDs and passwords are numbers that the history gave them; 0 is
// none.
type state struct {
	legacy     bool // the database has a single login
	overlay    overlayState
	database   serving
	generation int16 // of the role set: how many intents there were
	made       int8  // roles so far; their ordinals are 1 to made
	begun      int8  // public changes so far
	roles      [maxRoles]roleState
	changes    [maxChanges]changeState
	pending    pendingChange
	passwords  [maxPasswords]credential // by number; those that were revealed
}

// roleState is a role. Its ID is not known to the model before an answer has told it.
type roleState struct {
	status     role.Status
	id, key    int8
	body, name int8 // what was asked for, and the label by now
	generation int8 // of the credential
	letsIn     int8 // the credential generation with which the server lets in, if the owner lets connect; 0: none
	shutOut    bool // the owner does not let it connect
	preparing  bool // somebody has asked for that, and it may be under way
	admitting  bool // the same
	deleters   int8 // calls that are at work on its deletion
	removers   int8 // calls that are at work on its removal only
	eager      int8 // of both, those that have not begun a removal yet: each begins one at most
	owns       bool // something of the owner's depends on it
	kept       bool // a removal has come to nothing by that
}

type changeState struct {
	kind       role.Kind
	id, key    int8 // key 0: the service's own
	ordinal    int8
	generation int8
	completed  bool
}

// pendingChange is the one change of a database that has not ended; its kind is empty where there is none.
type pendingChange struct {
	kind    role.Kind
	ordinal int8
	change  int8 // its number among the public ones; 0: it is none
	applied bool // the server has done it, the store does not know
	kept    bool // a removal that dependencies have kept from removing
}

type credential struct{ ordinal, generation int8 }

func (s *state) calm() bool { return s.pending.kind == "" }

// role is that of an ordinal.
func (s *state) role(ordinal int8) *roleState { return &s.roles[ordinal-1] }

// byID returns the ordinal of a role whose ID is known; 0 where there is none.
func (s *state) byID(id int8) int8 {
	return s.find(func(r *roleState) bool { return r.id == id })
}

func (s *state) byKey(key int8) int8 {
	return s.find(func(r *roleState) bool { return r.key == key })
}

func (s *state) find(match func(*roleState) bool) int8 {
	for i := int8(1); i <= s.made; i++ {
		if match(s.role(i)) {
			return i
		}
	}
	return 0
}

// learn ties an ID to an ordinal, and reports whether that contradicts what is known.
func (s *state) learn(ordinal, id int8) bool {
	if ordinal < 1 || ordinal > s.made {
		return false
	}
	known := s.byID(id)
	if known == 0 && s.role(ordinal).id == 0 {
		s.role(ordinal).id = id
		return true
	}
	return known == ordinal
}

// learnChange ties an ID to the change of a number.
func (s *state) learnChange(number, id int8) bool {
	known := s.changeByID(id)
	if known == 0 && s.changes[number-1].id == 0 {
		s.changes[number-1].id = id
		return true
	}
	return known == number
}

func (s *state) changeByID(id int8) int8 {
	return s.findChange(func(c changeState) bool { return c.id == id })
}

func (s *state) findChange(match func(changeState) bool) int8 {
	for i := range s.begun {
		if match(s.changes[i]) {
			return i + 1
		}
	}
	return 0
}

// halfMade: the role is not known to stand with a log-in.
func (r roleState) halfMade() bool { return r.status == role.Reserved || r.status == role.SQLReady }

// rest: a call on its way to a removal has ended.
func (r *roleState) rest() { r.eager = min(r.eager, r.deleters+r.removers) }

// nameFree: no other living role has the label.
func (s *state) nameFree(name, own int8) bool {
	return s.find(func(r *roleState) bool { return r.status != role.Removed && r.name == name && r != s.roleOrNil(own) }) == 0
}

func (s *state) roleOrNil(ordinal int8) *roleState {
	if ordinal == 0 {
		return nil
	}
	return s.role(ordinal)
}

// admitsNew: spec, rules 7-9 for create, but for the status of the database. Connection limits are small and keys few, so that
// the budget never matters here.
func (s *state) admitsNew(name int8) bool {
	unfinished := s.find(func(r *roleState) bool { return r.halfMade() })
	return s.calm() && unfinished == 0 && s.nameFree(name, 0) && s.made < maxRoles && s.roomForRole()
}

// begin makes a change pending.
func (s *state) begin(ordinal int8, k role.Kind, key int8) {
	s.generation++
	s.pending = pendingChange{kind: k, ordinal: ordinal}
	r := s.role(ordinal)
	if k == role.Removal {
		r.eager--
		return
	}
	c := changeState{kind: k, key: key, ordinal: ordinal, generation: r.generation}
	if k == role.Rotation {
		c.generation++
	}
	s.changes[s.begun] = c
	s.begun++
	s.pending.change = s.begun
	r.status = role.Updating
}
