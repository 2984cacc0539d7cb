package fakeagent

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/core/slowquery"
	"github.com/pgherd/pgherd/ports"
)

// Server is one PostgreSQL, PgBouncer and agent in memory. It is safe for concurrent use.
type Server struct {
	clock        ports.Clock
	fleet        *Fleet
	installation string
	began        time.Time

	mu        sync.Mutex
	ledger    ledger
	databases map[id.DatabaseID]*databaseState
	foreign   map[string]bool // names of databases and logins that are not ours
	files     map[fileKey]*file
	jobs      map[id.OperationID]*job
	reading   *command.RereadBackup // while it is held
	drilling  id.DrillID            // the one that goes on
	faults    faults
	lastOID   int64
	sight     *server.Survey // as set
	sizes     sizes
	watched   watched
	archive   archive
	heritage  map[string]command.Inherit
	snapshots map[snapshotKey][]byte // of metadata

	offers        map[extension.Name]Offer
	extensionJobs map[id.OperationID]*extensionJob
	restores      map[id.OperationID]*restoreJob
	looks         map[id.OperationID]*lookJob
	moves         map[id.OperationID]*move
	uploads       map[uploadKey]*upload
	forwards      map[id.DatabaseID]*forwarded
	publicCA      string                  // of its pooler
	ended         map[id.OperationID]bool // they have isolated, rejoined or purged a database
}

// databaseState is a database that stands under its name or, while it is isolated, under another one.
type databaseState struct {
	id        id.DatabaseID
	oid       int64
	name      string
	model     database.RoleModel
	overlay   bool // its group roles stand
	spread    bool // they have all their rights
	cap       int
	madeBy    id.OperationID
	key       []byte // of its backups
	logins    map[string]*login
	open      bool
	empty     bool         // its data is yet to come; no Switch and no Serve has opened it
	isolated  bool         // out of service
	account   id.AccountID // empty until the agent is told
	networks  []netip.Prefix
	welcome   []netip.Addr           // of servers that send on
	settings  command.Configure      // the last that was done
	overrides []command.RoleOverride // customers' own settings of single roles
	made      time.Time
	load      Load            // as set
	contents  string          // SQL text
	size      int64           // as set; 0: that of contents
	inside    *command.Rights // as set; nil: those that it was made with
	sessions  map[*Session]bool
	// extensions are those that are installed.
	extensions map[extension.Name]installed
	statements []slowquery.Statement // that its owner has run
}

func newServer(clock ports.Clock, of *Fleet) *Server {
	return &Server{
		clock: clock, fleet: of, heritage: map[string]command.Inherit{}, began: clock.Now(),
		watched: watched{began: clock.Now()}, ledger: newLedger(clock.Now),
		databases: map[id.DatabaseID]*databaseState{}, foreign: map[string]bool{}, forwards: map[id.DatabaseID]*forwarded{},
		files: map[fileKey]*file{}, jobs: map[id.OperationID]*job{},
		offers: offers(), extensionJobs: map[id.OperationID]*extensionJob{}, restores: map[id.OperationID]*restoreJob{},
		archive: archive{kept: map[id.DatabaseID][]kept{}}, uploads: map[uploadKey]*upload{}, snapshots: map[snapshotKey][]byte{},
		looks: map[id.OperationID]*lookJob{}, ended: map[id.OperationID]bool{},
		moves: map[id.OperationID]*move{},
	}
}

// Databases returns the names of the databases that the platform made, sorted.
func (s *Server) Databases() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.databases))
	for _, d := range s.databases {
		if d.isolated {
			names = append(names, isolatedName(d.id))
		} else {
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	return names
}

// Logins returns the names of the logins that the platform made, sorted.
func (s *Server) Logins() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for _, d := range s.databases {
		names = slices.AppendSeq(names, maps.Keys(d.logins))
	}
	slices.Sort(names)
	return names
}

// Networks are those that a database admits, sorted; none where it admits every address.
func (s *Server) Networks(name string) []netip.Prefix {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.named(name); d != nil {
		return slices.Clone(d.networks)
	}
	return nil
}

// Prune forgets the results of all commands, as an agent does after a while.
func (s *Server) Prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.ledger.commands)
}

// AddForeign puts a database or login on the server that the platform did not make.
func (s *Server) AddForeign(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign[name] = true
}

// Load runs SQL text in a database as a customer would: it becomes part of the database's dumps and of its size. It reports
// whether there is such a database.
func (s *Server) Load(name, sql string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(name)
	if d != nil {
		s.loaded(d, sql)
	}
	return d != nil
}

func (s *Server) loaded(d *databaseState, sql string) {
	d.contents += sql
	d.ran(sql)
	s.remember(d)
}

// HasTable reports whether a database has a table that Load has made, as "CREATE TABLE <table> (".
func (s *Server) HasTable(name, table string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.named(name)
	return d != nil && strings.Contains(d.contents, "CREATE TABLE "+table+" (")
}

// Rows counts what Load has put into a table, a row by each line with "INSERT INTO <table> ".
func (s *Server) Rows(name, table string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.named(name); d != nil {
		return d.rows(table)
	}
	return 0
}

func (d *databaseState) rows(table string) int {
	return strings.Count("\n"+d.contents, "\nINSERT INTO "+table+" ")
}

// named is the database that is in service under a name.
func (s *Server) named(name string) *databaseState {
	for _, d := range s.databases {
		if d.name == name && !d.isolated {
			return d
		}
	}
	return nil
}

// taken reports whether a name is in use for a database or a login.
func (s *Server) taken(name string) bool {
	if s.foreign[name] {
		return true
	}
	for _, d := range s.databases {
		if d.logins[name] != nil {
			return true
		}
		names := database.RoleNames(d.id, d.name)
		if slices.Contains([]string{names.Owner, names.Runtime, names.Readonly}, name) {
			return true
		}
	}
	return false
}
