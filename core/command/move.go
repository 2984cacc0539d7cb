package command

import (
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/id"
)

// A database moves from one server, the source, to another one, the target, by commands of one operation to the agents of both.
//
//	target   EnsureDatabase (closed), EnsureOverlay, PrepareRole
//	source   AdmitPeer
//	source   Backup (passing, followed): a file of the moment from which on the source keeps changes
//	target   Load (of the file at the source, also while it is being written), Switch (moving): the database as it was then
//	target   Follow: the changes since, until little is missing
//	source   Part: customers are kept out, and nothing changes any more
//	target   Take: the rest of the changes, and what does not come by them
//	         the metadata say from now on that the database is the target's: until here, Close on both undoes everything
//	target   Serve: customers get in as before
//	source   Depart: the database is gone here, and Forward sends on who still comes
//	target   AdoptBackup from the peer; then the source may Leave what it has kept of it
//
// A move that cannot follow is closed: Part comes before the Backup, which is not Followed, and there is no Follow and no Take.

// AskMovable asks what is in the way of moving a database while it serves. ReasonNotFound: there is no such database.
type AskMovable struct {
	Returns[Movable] `json:"-"`
	DatabaseID       id.DatabaseID `json:"-" path:"id"`
}

// Movable is what is in the way. Where nothing is, the database can be followed.
type Movable struct {
	SizeBytes int64 `json:"sizeBytes"`
	// Obstacles are at most MostObstacles, those of one kind together.
	Obstacles []Obstacle `json:"obstacles"`
	More      int        `json:"more,omitempty"` // obstacles that are not listed
	// SchemaSHA256 changes with whatever of the database can change what a rehearsal finds: its schema and owners, without rows,
	// privileges, settings, and partitions that are as their siblings. Only this server knows which value means what.
	SchemaSHA256 string `json:"schemaSha256"`
}

// MostObstacles bounds those that are listed.
const MostObstacles = 100

// Obstacle is something that logical replication does not carry over.
type Obstacle struct {
	Kind   ObstacleKind `json:"kind"`
	Object string       `json:"object,omitempty"` // as SQL names it
}

// ObstacleKind says why.
type ObstacleKind string

// The kinds of obstacles.
const (
	// NoIdentity is of a table whose rows cannot be told apart: UPDATE and DELETE would fail while it is followed.
	NoIdentity ObstacleKind = "no_replica_identity"
	// Unlogged is of a table whose changes PostgreSQL does not write to its log.
	Unlogged ObstacleKind = "unlogged"
	// LargeObjects says that there are more of them than can be taken over at the end.
	LargeObjects ObstacleKind = "large_objects"
	// Materialized is of a materialized view: what REFRESH makes of it is not a change of rows that is followed.
	Materialized ObstacleKind = "materialized_view"
	// NotLogical says that the server's wal_level is not logical, or that it has no slot free.
	NotLogical ObstacleKind = "not_logical"
	// Other is anything else; Object says what.
	Other ObstacleKind = "other"
)

// Route implements Question.
func (AskMovable) Route() Route { return Route{Method: "GET", Path: "/v1/databases/{id}/movable"} }

// Check implements Question.
func (q AskMovable) Check() error { return checkDatabase(q.DatabaseID) }

// Follow has the target apply the source's changes to the database that the same operation has loaded. It starts the work, takes
// it up after a crash, or reports on it, and returns at once.
type Follow struct {
	Returns[FollowReport] `json:"-"`
	DatabaseID            id.DatabaseID `json:"databaseId"`
	Peer                  Peer          `json:"-"`
}

// FollowState says how far the target is.
type FollowState string

// The states of following.
const (
	Following    FollowState = "following"
	FollowedNear FollowState = "near"   // so little is missing that the rest comes in less than a second
	FollowFailed FollowState = "failed" // it will not come to an end: Message says why
)

// UnmarshalText refuses an unknown state.
func (s *FollowState) UnmarshalText(text []byte) (err error) {
	*s, err = oneOf(text, Following, FollowedNear, FollowFailed)
	return err
}

// FollowReport is the progress of a Follow.
type FollowReport struct {
	State FollowState `json:"state"`
	// Behind is how many bytes of the source's log are yet to be looked at.
	Behind  int64  `json:"behind"`
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"` // of FollowFailed; fit for the customer
}

// About implements Command.
func (c Follow) About() About { return ofDatabase("move.follow", c.DatabaseID, 1) }

// Secrets are the peer.
func (c Follow) Secrets() map[string]string { return c.Peer.secrets() }

func (c *Follow) receive(e Envelope) { c.Peer = receivedPeer(e) }

// Check implements Command.
func (c Follow) Check() error {
	if err := c.Peer.check(); err != nil {
		return err
	}
	return checkDatabase(c.DatabaseID)
}

// Part has the source keep customers out, end their sessions, and say what the target needs beside the changes. Close lets them
// in again. ReasonBusy: they cannot be kept out in time; nothing came of it, try again. ReasonAltered: something was changed
// since the file was made that does not come by changes, such as a table's columns; Message says what, and is fit for the
// customer.
type Part struct {
	Returns[Parted] `json:"-"`
	DatabaseID      id.DatabaseID `json:"databaseId"`
	// Closed says that the move does not follow: the file is made afterwards.
	Closed bool `json:"closed,omitempty"`
}

// Parted is what the source has at the end.
type Parted struct {
	// Position is where the last change ends in the source's log, as PostgreSQL writes it.
	Position string `json:"position,omitempty"`
	// Sequences are all of the database.
	Sequences []Sequence `json:"sequences,omitempty"`
	// ServedMilliseconds is how long customers were still served after the command had come.
	ServedMilliseconds int64 `json:"servedMilliseconds,omitempty"`
}

// Sequence is what a sequence gives next.
type Sequence struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Last   int64  `json:"last"`
	Called bool   `json:"called"` // Last was given
}

// About implements Command.
func (c Part) About() About { return ofDatabase("move.part", c.DatabaseID, 1) }

// Check implements Command.
func (c Part) Check() error { return checkDatabase(c.DatabaseID) }

// Take has the target wait until the changes up to the position are there, stop following, and take over the rest. ReasonAltered:
// the database did not become what the source has; Message says where it differs, and is fit for the customer. ReasonUnfinished:
// changes are still missing; send it again.
type Take struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
	Parted        Parted        `json:"parted"`
}

// About implements Command.
func (c Take) About() About { return ofDatabase("move.take", c.DatabaseID, 1) }

// Check implements Command.
func (c Take) Check() error { return checkDatabase(c.DatabaseID) }

// Serve has the target let customers in, with the passwords that they have, and completes the operation there: from then on Close
// is ReasonCompleted. Additional roles were prepared before; those that are given here may log in, as the managed logins may.
type Serve struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
	Open          bool          `json:"open"` // false: the database is stopped
	Roles         []AdmitRole   `json:"roles,omitempty"`
	// Passwords are those in force of the logins that may log in: they may have been changed since the target made them.
	Passwords  []Password `json:"passwords,omitempty"`
	Generation int64      `json:"-"` // of the database's access
}

// Password is the one of a login that is in force, and the generation of its credential.
type Password struct {
	Username   string `json:"username"`
	Verifier   string `json:"verifier"` // SCRAM-SHA-256
	Generation int64  `json:"generation"`
}

// About implements Command.
func (c Serve) About() About {
	about := ofDatabase("database.access", c.DatabaseID, c.Generation)
	about.Step = "move.serve"
	return about
}

func (c *Serve) receive(e Envelope) { c.Generation = e.Generation }

// Check implements Command.
func (c Serve) Check() error {
	for _, r := range c.Roles {
		if r.DatabaseID != c.DatabaseID {
			return Refuse(ReasonInvalid, "roles has one of another database")
		}
		if !verifierPattern.MatchString(r.Verifier) {
			return Refuse(ReasonInvalid, "roles: verifier is none of SCRAM-SHA-256")
		}
		if err := checkRole(r.DatabaseID, r.Username); err != nil {
			return err
		}
		if err := checkGrants(r.AccessProfile, r.ConnectionLimit); err != nil {
			return err
		}
	}
	if err := checkInForce(c.Passwords); err != nil {
		return err
	}
	return checkDatabase(c.DatabaseID)
}

func checkInForce(passwords []Password) error {
	for _, p := range passwords {
		if !verifierPattern.MatchString(p.Verifier) || p.Generation < 1 {
			return Refuse(ReasonInvalid, "passwords: the verifier is none of SCRAM-SHA-256, or the generation below 1")
		}
	}
	return nil
}

// Depart has the source give up a database that is the target's now: it is dropped, with its logins and roles. Its backups stay
// until Leave, for a peer that is admitted. It completes the operation here.
type Depart struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID `json:"databaseId"`
}

// About implements Command.
func (c Depart) About() About { return ofDatabase("move.depart", c.DatabaseID, 1) }

// Check implements Command.
func (c Depart) Check() error { return checkDatabase(c.DatabaseID) }

// Leave has the source remove what Depart has kept: the backups, and the key that encrypts them. Kept names those that stay,
// because the target could not take them over; then the key stays, too. The peer is admitted no more.
type Leave struct {
	Returns[None] `json:"-"`
	DatabaseID    id.DatabaseID     `json:"databaseId"`
	Kept          []backup.Filename `json:"kept,omitempty"`
}

// About implements Command.
func (c Leave) About() About { return ofDatabase("move.leave", c.DatabaseID, 1) }

// Check implements Command.
func (c Leave) Check() error { return checkDatabase(c.DatabaseID) }
