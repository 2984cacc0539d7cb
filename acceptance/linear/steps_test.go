package linear

import "github.com/pgherd/pgherd/core/role"

// steps are the rules: when a fact can be true, and what it changes.
var steps = map[event]func(s state, f fact) []state{
	createBegun:   beginCreate,
	createRefused: func(s state, f fact) []state { return only(s, s.refusesCreate(f)) },
	created: func(s state, f fact) []state {
		ordinal := s.byKey(f.key)
		return only(s, ordinal != 0 && ordinal == f.shown.ordinal && s.shows(f.shown) && (s.legacy || !s.role(ordinal).halfMade()))
	},
	seen: func(s state, f fact) []state { return only(s, s.shows(f.shown)) },
	prepareBegun: func(s state, f fact) []state {
		r := &s.roles[max(s.byID(f.shown.id), 1)-1]
		r.preparing = r.preparing || s.legacy
		return only(s, r.status == role.Reserved && s.serves() || r.status == role.SQLReady && !s.changing(f.shown.id))
	},
	prepareNo: func(s state, f fact) []state {
		return only(s, s.refusesSetup(f.shown.id, role.Reserved, role.SQLReady))
	},
	admitBegun: func(s state, f fact) []state {
		r := &s.roles[max(s.byID(f.shown.id), 1)-1]
		r.admitting = r.admitting || s.legacy
		return only(s, r.status == role.SQLReady && s.serves() || r.status == role.Ready)
	},
	admitNo:  func(s state, f fact) []state { return only(s, s.refusesSetup(f.shown.id, role.SQLReady, role.Ready)) },
	renamed:  rename,
	renameNo: func(s state, f fact) []state { return only(s, s.refusesRename(f)) },
	revealed: reveal,
	revealNo: func(s state, f fact) []state {
		return only(s, s.living(f.shown.id) && (s.statusOf(f.shown.id) != role.Ready || s.database != serves))
	},
	changeBegun: beginChange,
	changeNo:    func(s state, f fact) []state { return only(s, s.refusesChange(f)) },
	changeSeen: func(s state, f fact) []state {
		number := s.changeByID(f.change)
		return only(s, number != 0 && s.changes[number-1].completed == f.yes && s.changes[number-1].ordinal == s.byID(f.shown.id))
	},
	gone: func(s state, f fact) []state {
		return only(s, s.byID(f.shown.id) != 0 && s.statusOf(f.shown.id) == role.Removed)
	},
	deleteBegun: func(s state, f fact) []state {
		ordinal := s.byID(f.shown.id)
		if ordinal != 0 {
			s.role(ordinal).deleters++
			s.role(ordinal).eager++
		}
		return only(s, ordinal != 0)
	},
	removeBegun: func(s state, f fact) []state {
		ordinal := s.byID(f.shown.id)
		if ordinal != 0 {
			s.role(ordinal).removers++
			s.role(ordinal).eager++
		}
		return only(s, ordinal != 0)
	},
	deleteDone:    func(s state, f fact) []state { return s.endDelete(f, s.statusOf(f.shown.id) == role.Removed) },
	deletePending: endPending,
	deleteNo:      func(s state, f fact) []state { return s.endDelete(f, s.refusesDelete(f.shown.id)) },
	deleteKept:    func(s state, f fact) []state { return s.endDelete(f, s.wasKept(f.shown.id)) },
	removeDone:    func(s state, f fact) []state { return s.endRemove(f, s.statusOf(f.shown.id) == role.Removed) },
	removePending: func(s state, f fact) []state { return s.endRemove(f, s.pendingOf(f.shown.id) == role.Removal) },
	removeNo:      func(s state, f fact) []state { return s.endRemove(f, s.refusesRemove(f.shown.id)) },
	removeKept:    func(s state, f fact) []state { return s.endRemove(f, s.wasKept(f.shown.id)) },
	depends:       depend,
	listed:        func(s state, f fact) []state { return list(s, f, false) },
	listedAll:     func(s state, f fact) []state { return list(s, f, true) },
	knocked: func(s state, f fact) []state {
		c := s.passwords[f.password]
		return only(s, c.ordinal != 0 && s.knocks(c, f.yes))
	},
}

func (s *state) statusOf(id int8) role.Status {
	if ordinal := s.byID(id); ordinal != 0 {
		return s.role(ordinal).status
	}
	return ""
}

func (s *state) living(id int8) bool { return s.byID(id) != 0 && s.statusOf(id) != role.Removed }

// pendingOf is the kind of the change of a role that has not ended.
func (s *state) pendingOf(id int8) role.Kind {
	if s.changing(id) {
		return s.pending.kind
	}
	return ""
}

func (s *state) changing(id int8) bool { return !s.calm() && s.pending.ordinal == s.byID(id) }

// shows: the role stands as an answer shows it. The first answer tells its ID.
func (s *state) shows(a shown) bool {
	if !s.learn(a.ordinal, a.id) {
		return false
	}
	r := s.role(a.ordinal)
	return r.status == a.status && r.name == a.name && r.key == a.key && r.generation == a.generation &&
		(a.set == 0 || a.set == s.generation)
}

func beginCreate(s state, f fact) []state {
	if ordinal := s.byKey(f.key); ordinal != 0 {
		return only(s, !s.refusesCreate(f))
	}
	if !s.admitsNew(f.name) || s.database == stopped {
		return nil
	}
	s.generation++
	s.made++
	*s.role(s.made) = roleState{
		status: role.Reserved, key: f.key, body: f.body, name: f.name, generation: 1, shutOut: s.legacy,
	}
	return only(s, true)
}

func (s *state) refusesCreate(f fact) bool {
	ordinal := s.byKey(f.key)
	if ordinal == 0 {
		return !s.admitsNew(f.name) || s.database != serves
	}
	r := s.role(ordinal)
	if s.legacy { // each further step is a request of its own
		return r.body != f.body || r.status == role.Removed
	}
	return r.body != f.body || r.status == role.Removed || r.halfMade() && !s.calm() ||
		f.yes && (s.pending.ordinal == ordinal || r.status == role.Revoked)
}

// refusesSetup: the role is neither of two statuses, or a change keeps it from going from the first to the second.
func (s *state) refusesSetup(id int8, from, to role.Status) bool {
	status := s.statusOf(id)
	restless := !s.calm() || s.database != serves
	return s.living(id) && (status != from && status != to || status == from && restless || s.changing(id))
}

func rename(s state, f fact) []state {
	ordinal := s.byID(f.shown.id)
	if ordinal == 0 || s.refusesRename(f) || !s.living(f.shown.id) {
		return nil
	}
	s.role(ordinal).name = f.name
	return only(s, s.shows(f.shown))
}

func (s *state) refusesRename(f fact) bool {
	status := s.statusOf(f.shown.id)
	return s.living(f.shown.id) && (status != role.Ready && status != role.Revoked || !s.nameFree(f.name, s.byID(f.shown.id)))
}

// reveal: the password is that of the role's credential generation, and no other one is.
func reveal(s state, f fact) []state {
	if !s.shows(f.shown) || f.shown.status != role.Ready || s.database == stopped {
		return nil
	}
	is := credential{f.shown.ordinal, f.shown.generation}
	for number, known := range s.passwords {
		if known == is && number != int(f.password) {
			return nil
		}
	}
	if known := s.passwords[f.password]; known != (credential{}) && known != is {
		return nil
	}
	s.passwords[f.password] = is
	return only(s, true)
}

func beginChange(s state, f fact) []state {
	ordinal := s.byID(f.shown.id)
	if ordinal == 0 || !s.admitsChange(f) || !s.living(f.shown.id) {
		return nil
	}
	number := s.findChange(func(c changeState) bool { return c.key == f.key })
	if number == 0 {
		s.begin(ordinal, f.kind, f.key)
		number = s.begun
	}
	return only(s, s.learnChange(number, f.change) && s.changes[number-1].generation == f.shown.generation)
}

// admitsChange is not refusesChange while an operation is under way: both may be.
func (s *state) admitsChange(f fact) bool {
	if s.database == underWay {
		s.database = serves
		defer func() { s.database = underWay }()
	}
	return !s.refusesChange(f)
}

func (s *state) refusesChange(f fact) bool {
	if !s.living(f.shown.id) {
		return false
	}
	number := s.findChange(func(c changeState) bool { return c.key == f.key })
	if number == 0 {
		return s.statusOf(f.shown.id) != role.Ready || !s.calm() || s.begun == maxChanges ||
			s.database == underWay || s.database == stopped && f.kind == role.Rotation
	}
	c := s.changes[number-1]
	return c.kind != f.kind || c.ordinal != s.byID(f.shown.id)
}

func (s state) endDelete(f fact, when bool) []state {
	ordinal := s.byID(f.shown.id)
	if ordinal == 0 || s.role(ordinal).deleters == 0 || !when {
		return nil
	}
	s.role(ordinal).deleters--
	s.role(ordinal).rest()
	return only(s, true)
}

func (s state) endRemove(f fact, when bool) []state {
	ordinal := s.byID(f.shown.id)
	if ordinal == 0 || s.role(ordinal).removers == 0 || !when {
		return nil
	}
	s.role(ordinal).removers--
	s.role(ordinal).rest()
	return only(s, true)
}

// endPending: a deletion is pending in the phase that the answer names.
func endPending(s state, f fact) []state {
	if s.pendingOf(f.shown.id) != f.kind {
		return nil
	}
	if f.kind == role.Revocation && !s.learnChange(s.pending.change, f.change) {
		return nil
	}
	return s.endDelete(f, true)
}

func (s *state) refusesDelete(id int8) bool {
	k := s.pendingOf(id)
	return s.living(id) && (s.database == underWay || !s.calm() && k != role.Revocation && k != role.Removal)
}

func (s *state) refusesRemove(id int8) bool {
	return s.living(id) && (s.statusOf(id) != role.Revoked || !s.calm() && s.pendingOf(id) != role.Removal)
}

// wasKept: a removal of the role, which is revoked, has come to nothing.
func (s *state) wasKept(id int8) bool {
	return s.statusOf(id) == role.Revoked && s.role(s.byID(id)).kept
}

// depend: the owner makes something depend on a role that stands on the server, or takes all of it away.
func depend(s state, f fact) []state {
	ordinal := s.passwords[f.password].ordinal
	if ordinal == 0 || s.role(ordinal).status == role.Removed ||
		s.pending.ordinal == ordinal && s.pending.kind == role.Removal && s.pending.applied && !s.pending.kept {
		return nil
	}
	s.role(ordinal).owns = f.yes
	return only(s, true)
}

func list(s state, f fact, revoked bool) []state {
	rest := f.list
	for ordinal := int8(1); ordinal <= s.made; ordinal++ {
		status := s.role(ordinal).status
		if status == role.Removed || status == role.Revoked && !revoked {
			continue
		}
		if len(rest) == 0 || rest[0].ordinal != ordinal || !s.shows(rest[0]) {
			return nil
		}
		rest = rest[1:]
	}
	return only(s, len(rest) == 0)
}
