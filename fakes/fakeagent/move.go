package fakeagent

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// move is what a server has of an operation that moves a database: as its source, its target, or both.
type move struct {
	database id.DatabaseID
	token    string // the SHA-256 of who is admitted; empty: nobody

	// of the source
	followed bool   // a slot keeps the changes
	schema   string // of the moment at which it began
	parted   bool
	wasOpen  bool

	// of the target
	following, taken bool
}

// HoldDumps has files that are being written not come to their ends until they are told otherwise.
func (s *Server) HoldDumps(on bool) { s.set(func(f *faults) { f.holdDumps = on }) }

// HoldFollows has targets stay behind until they are told otherwise.
func (s *Server) HoldFollows(on bool) { s.set(func(f *faults) { f.holdFollows = on }) }

// FailFollows has targets not come to an end, with this message; empty lets them again.
func (s *Server) FailFollows(message string) { s.set(func(f *faults) { f.failFollows = message }) }

// FailTakes has targets find that a database did not become what its source has; empty lets them again.
func (s *Server) FailTakes(message string) { s.set(func(f *faults) { f.failTakes = message }) }

// SetApart has the server not reach its peers, until it is told otherwise.
func (s *Server) SetApart(on bool) { s.set(func(f *faults) { f.apart = on }) }

// SetLogical says whether the server can be followed at all; at first it can.
func (s *Server) SetLogical(on bool) { s.set(func(f *faults) { f.notLogical = !on }) }

func (s *Server) notLogical() string {
	if s.faults.notLogical {
		return "wal_level is replica, and not logical"
	}
	return ""
}

// Slots counts the operations for which the server keeps changes.
func (s *Server) Slots() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.moves {
		if m.followed {
			n++
		}
	}
	return n
}

func (s *Server) moveOf(op id.OperationID, db id.DatabaseID) *move {
	if s.moves[op] == nil {
		s.moves[op] = &move{database: db}
	}
	return s.moves[op]
}

// movable reads the statements of a database: a table without PRIMARY KEY has no identity.
func (s *Server) movable(d *databaseState) command.Movable {
	found := command.Movable{
		SizeBytes: d.bytes(), Obstacles: []command.Obstacle{}, SchemaSHA256: sum([]byte(schemaOf(d.contents))),
	}
	if why := s.notLogical(); why != "" {
		found.Obstacles = append(found.Obstacles, command.Obstacle{Kind: command.NotLogical, Object: why})
	}
	for line := range strings.Lines(d.contents) {
		for start, kind := range map[string]command.ObstacleKind{
			"CREATE TABLE ": command.NoIdentity, "CREATE UNLOGGED TABLE ": command.Unlogged,
			"CREATE MATERIALIZED VIEW ": command.Materialized,
		} {
			rest, is := strings.CutPrefix(line, start)
			if name, _, _ := strings.Cut(rest, " "); is && (kind != command.NoIdentity || !strings.Contains(rest, "PRIMARY KEY")) {
				found.Obstacles = append(found.Obstacles, command.Obstacle{Kind: kind, Object: "public." + name})
			}
		}
	}
	if more := len(found.Obstacles) - command.MostObstacles; more > 0 {
		found.Obstacles, found.More = found.Obstacles[:command.MostObstacles], more
	}
	return found
}

func (s *Server) admitPeer(op id.OperationID, c command.AdmitPeer) (none command.None, err error) {
	s.moveOf(op, c.DatabaseID).token = c.TokenSHA256
	return none, nil
}

// keepChanges is for the source, when the file is begun that a target goes on from.
func (s *Server) keepChanges(op id.OperationID, d *databaseState) {
	m := s.moveOf(op, d.id)
	m.followed, m.schema = true, schemaOf(d.contents)
}

// schemaOf is what does not come by changes of rows.
func schemaOf(contents string) string {
	var schema strings.Builder
	for line := range strings.Lines(contents) {
		if !strings.HasPrefix(line, "INSERT INTO ") {
			schema.WriteString(line)
		}
	}
	return schema.String()
}

// errNotAdmitted is of a peer that does not know the token.
var errNotAdmitted = command.Refuse(command.ReasonFailed, "the other server does not admit this one for the operation")

// withPeer does something with the server that admits this one for an operation, under the locks of both. The error is
// ErrAgentUnreachable where it is away.
func (s *Server) withPeer(op id.OperationID, p command.Peer, do func(*Server, *move) error) error {
	for _, other := range s.fleet.others(s) {
		for !other.mu.TryLock() { // it may look at this one just now
			s.mu.Unlock()
			runtime.Gosched()
			s.mu.Lock()
		}
		m := other.moves[op]
		if m == nil || m.token == "" || m.token != command.HashToken(p.Token) {
			other.mu.Unlock()
			continue
		}
		err := ports.ErrAgentUnreachable
		if !other.faults.unreachable && !other.faults.unavailable && !s.faults.apart {
			err = do(other, m)
		}
		other.mu.Unlock()
		return err
	}
	return errNotAdmitted
}

// others are all servers but one.
func (f *Fleet) others(but *Server) (list []*Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range slices.Sorted(maps.Keys(f.servers)) {
		if s := f.servers[of]; s != but {
			list = append(list, s)
		}
	}
	return list
}

func (s *Server) reach(q command.ReachPeer) (found command.PeerReached, err error) {
	if err := q.Check(); err != nil {
		return found, err
	}
	err = s.withPeer(q.Operation, q.Peer, func(*Server, *move) error { return nil })
	if err != nil {
		found.Why = err.Error()
	}
	return found, nil
}

// fileAt is a file that the peer makes for an operation, nil where that is away or not done with it, or why there will be none.
func (s *Server) fileAt(op id.OperationID, p command.Peer, name backup.Filename) (found *file, why *command.Refusal) {
	err := s.withPeer(op, p, func(from *Server, m *move) error {
		found = from.files[fileKey{m.database, name, true}]
		return nil
	})
	errors.As(err, &why)
	return found, why
}

func (s *Server) follow(op id.OperationID, d *databaseState, c command.Follow) (command.FollowReport, error) {
	if !s.movesHere(op, d) {
		return command.FollowReport{},
			command.Refuse(command.ReasonNotFound, "the operation has not put a copy in the database's place")
	}
	m := s.moveOf(op, d.id)
	report := command.FollowReport{State: command.Following, Behind: 1 << 20}
	if first := !m.following; first {
		m.following = true
		return report, nil
	}
	err := s.withPeer(op, c.Peer, func(_ *Server, source *move) error {
		switch {
		case !source.followed:
			return command.Refuse(command.ReasonFailed, "the other server does not keep the changes of the database")
		case s.faults.failFollows != "":
			return command.Refuse(command.ReasonFailed, "%s", s.faults.failFollows)
		case !s.faults.holdFollows:
			report = command.FollowReport{State: command.FollowedNear}
		}
		return nil
	})
	if why, refused := err.(*command.Refusal); refused { //nolint:errorlint // it is made here
		report = command.FollowReport{State: command.FollowFailed, Reason: why.Reason, Message: why.Message}
	}
	return report, nil
}

// movesHere reports whether the database is here what the operation moves, and not opened yet.
func (s *Server) movesHere(op id.OperationID, d *databaseState) bool {
	r := s.restores[op]
	return d.empty && d.madeBy == op && r != nil && r.switched
}

func (s *Server) part(op id.OperationID, d *databaseState, c command.Part) (command.Parted, error) {
	m := s.moveOf(op, d.id)
	switch {
	case !c.Closed && !m.followed:
		return command.Parted{}, command.Refuse(command.ReasonNotFound, "nothing of the database is kept for the operation")
	case s.faults.busy > 0:
		s.faults.busy--
		clear(d.sessions) // they are ended all the same
		return command.Parted{}, command.Refuse(command.ReasonBusy, "sessions of the database cannot be ended")
	case !c.Closed && schemaOf(d.contents) != m.schema:
		return command.Parted{}, command.Refuse(command.ReasonAltered, "tables, functions or other objects were changed meanwhile")
	}
	m.parted, m.wasOpen, d.open = true, d.open, false
	clear(d.sessions)
	if c.Closed {
		return command.Parted{}, nil
	}
	return command.Parted{Position: position(d)}, nil
}

// position grows with what a database holds.
func position(d *databaseState) string { return fmt.Sprintf("0/%X", len(d.contents)) }

func (s *Server) take(op id.OperationID, d *databaseState, c command.Take) (none command.None, err error) {
	m := s.moveOf(op, d.id)
	if !s.movesHere(op, d) || !m.following {
		return none, command.Refuse(command.ReasonNotFound, "the operation does not follow the database")
	}
	if s.faults.failTakes != "" {
		return none, command.Refuse(command.ReasonAltered, "%s", s.faults.failTakes)
	}
	if s.faults.holdFollows {
		return none, command.Refuse(command.ReasonUnfinished, "changes are still missing")
	}
	source := s.fleet.parted(op, s, func(from *databaseState) {
		if position(from) == c.Parted.Position {
			d.contents, d.extensions, m.taken = from.contents, maps.Clone(from.extensions), true
		}
	})
	if !source || !m.taken {
		return none, command.Refuse(command.ReasonUnfinished, "changes are still missing")
	}
	s.remember(d)
	return none, nil
}

// parted does something with the database of the server that has parted with it, under the locks of both; false where there is
// none that can be reached.
func (f *Fleet) parted(op id.OperationID, to *Server, do func(*databaseState)) (done bool) {
	for _, other := range f.others(to) {
		for !other.mu.TryLock() {
			to.mu.Unlock()
			runtime.Gosched()
			to.mu.Lock()
		}
		if m := other.moves[op]; m != nil && m.parted && !other.faults.unreachable && !other.faults.unavailable {
			if d := other.databases[m.database]; d != nil {
				do(d)
				done = true
			}
		}
		other.mu.Unlock()
	}
	return done
}

func (s *Server) serveMoved(op id.OperationID, d *databaseState, c command.Serve) (none command.None, err error) {
	m := s.moveOf(op, d.id)
	switch {
	case s.ended[op]:
		return none, nil
	case !s.movesHere(op, d):
		return none, command.Refuse(command.ReasonNotFound, "the operation has not put a copy in the database's place")
	case m.following && !m.taken:
		return none, command.Refuse(command.ReasonFailed, "changes are still missing")
	}
	for _, r := range c.Roles {
		l := d.logins[r.Username]
		if l == nil || !l.additional {
			return none, command.Refuse(command.ReasonNotFound, "the server has no role %s", r.Username)
		}
	}
	for _, r := range c.Roles {
		l := d.logins[r.Username]
		l.open, l.profile, l.limit, l.verifier, l.until = true, r.AccessProfile, r.ConnectionLimit, r.Verifier, r.ValidUntil
		l.connect = true // as the owner has left it at the source
	}
	d.inForce(c.Passwords)
	d.empty, d.open = false, c.Open
	s.takeBack(d)
	s.forgetMove(op)
	s.ended[op] = true
	return none, nil
}

// inForce gives logins the passwords that are in force.
func (d *databaseState) inForce(list []command.Password) {
	for _, p := range list {
		if l := d.logins[p.Username]; l != nil {
			l.verifier, l.credential = p.Verifier, p.Generation
		}
	}
}

// forgetMove removes what only the operation needed. Who is admitted for it stays so.
func (s *Server) forgetMove(op id.OperationID) {
	if j := s.jobs[op]; j != nil && j.passes() {
		delete(s.files, keyOf(j.spec))
		delete(s.jobs, op)
	}
	delete(s.restores, op)
}

func (s *Server) depart(op id.OperationID, c command.Depart) (none command.None, err error) {
	m, d := s.moves[op], s.databases[c.DatabaseID]
	switch {
	case s.ended[op] || d == nil:
		s.ended[op] = true
		return none, nil
	case m == nil || !m.parted:
		return none, command.Refuse(command.ReasonInService, "the database is in service")
	}
	s.forgetMove(op)
	s.forgetDatabase(c.DatabaseID)
	for _, kept := range s.moves { // PostgreSQL drops slots with their database
		kept.followed = kept.followed && kept.database != c.DatabaseID
	}
	s.ended[op] = true
	return none, nil
}

func (s *Server) leave(op id.OperationID, c command.Leave) (none command.None, err error) {
	if s.databases[c.DatabaseID] != nil {
		return none, command.Refuse(command.ReasonInService, "the server has the database")
	}
	maps.DeleteFunc(s.files, func(key fileKey, _ *file) bool {
		return key.database == c.DatabaseID && !slices.Contains(c.Kept, key.filename)
	})
	delete(s.moves, op)
	return none, nil
}

// undoMove leaves a database as it was before an operation that is closed.
func (s *Server) undoMove(op id.OperationID) {
	m := s.moves[op]
	if m == nil {
		return
	}
	if d := s.databases[m.database]; d != nil && m.parted {
		d.open = m.wasOpen
		if d.open {
			s.takeBack(d)
		}
	}
	delete(s.moves, op)
}
