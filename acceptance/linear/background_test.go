package linear

import "github.com/pgherd/pgherd/core/role"

// reachable are the states that may have come about by the time that something is seen: work that was begun goes on by itself, in
// the request that began it, in another one, in the batch host, or by a command that was late on its way.
func reachable(from state) []state {
	found := []state{from}
	seen := map[state]bool{from: true}
	for i := 0; i < len(found); i++ {
		for _, next := range successors(found[i]) {
			if !seen[next] {
				seen[next] = true
				found = append(found, next)
			}
		}
	}
	return found
}

// successors are the states one step of the background away.
func successors(s state) []state {
	var next []state
	if !s.calm() {
		next = append(next, s.goneOn())
	}
	if s.overlay.status == overlayReserved {
		after := s
		after.overlay.status = overlayActive
		next = append(next, after)
	}
	for i := int8(1); i <= s.made; i++ {
		if after, steps := s.setUpFurther(i); steps {
			next = append(next, after)
		}
		if k := s.wanted(i); k != "" {
			after := s
			after.begin(i, k, 0)
			next = append(next, after)
		}
	}
	return next
}

// goneOn: first the server does the pending change, then the store knows.
func (s state) goneOn() state {
	if !s.pending.applied {
		return s.applied()
	}
	return s.committed()
}

func (s state) applied() state {
	r := s.role(s.pending.ordinal)
	s.pending.applied = true
	s.pending.kept = s.pending.kind == role.Removal && r.owns
	r.letsIn = 0
	if s.pending.kind == role.Rotation {
		r.letsIn = r.generation + 1
	}
	return s
}

func (s state) committed() state {
	r := s.role(s.pending.ordinal)
	switch s.pending.kind {
	case role.Rotation:
		r.status = role.Ready
		r.generation++
	case role.Revocation:
		r.status = role.Revoked
	case role.Removal:
		r.status = role.Removed
		if s.pending.kept {
			r.status, r.kept = role.Revoked, true
		}
	}
	if s.pending.change != 0 {
		s.changes[s.pending.change-1].completed = true
	}
	s.pending = pendingChange{}
	return s
}

// setUpFurther takes a role that is being made one step further. It does not while it is being removed. With a single login, each
// step is begun by a request of its own, and the last waits for the owner's CONNECT.
func (s state) setUpFurther(ordinal int8) (state, bool) {
	r := s.role(ordinal)
	if s.pending.ordinal == ordinal {
		return s, false
	}
	switch {
	case r.status == role.Reserved && (!s.legacy || r.preparing):
		r.status = role.SQLReady
	case r.status == role.SQLReady && !s.legacy:
		r.status, r.letsIn = role.Ready, r.generation
	case r.status == role.SQLReady && r.letsIn != 0: // what the server has done, the store learns
		r.status = role.Ready
	case r.status == role.SQLReady && r.admitting && !r.shutOut && s.database != stopped:
		r.letsIn = r.generation
	default:
		return s, false
	}
	return s, true
}

// wanted is the change that a call at work on a role's removal may begin now; none is "".
func (s state) wanted(ordinal int8) role.Kind {
	r := s.role(ordinal)
	switch {
	case !s.calm() || r.deleters+r.removers == 0:
		return ""
	case r.status == role.Revoked && r.eager > 0:
		return role.Removal
	case r.deleters == 0:
		return ""
	case r.status == role.Ready && s.begun < maxChanges:
		return role.Revocation
	case r.halfMade() && r.eager > 0:
		return role.Removal
	}
	return ""
}
