package controlplane_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/checkups"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/doctor"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/server"
	"github.com/pgherd/pgherd/fakes/fakeagent"
	"github.com/pgherd/pgherd/ports"
)

// patient is a treated world, whose only database something is done to.
type patient struct {
	*world
	db database.Record
}

// until lists something as changed until the agent gets a call that mends it; empty: for ever.
func (p *patient) until(call string, list func(differs func() bool)) {
	var mended atomic.Bool
	p.server.OnCall(func(_ context.Context, c fakeagent.Call) fakeagent.Fault {
		return fakeagent.Fault{Then: func() {
			if c.Method == call {
				mended.Store(true)
			}
		}}
	})
	list(func() bool { return !mended.Load() })
}

// database has the database be listed as changed until a call mends it.
func (p *patient) database(call string, change func(d *command.InventoryDatabase)) {
	p.until(call, func(differs func() bool) {
		p.server.Lists(func(d *command.InventoryDatabase) {
			if differs() {
				change(d)
			}
		})
	})
}

// role has one of the roles of the database be listed as changed.
func (p *patient) role(part string, change func(r *command.InventoryRole)) {
	p.database("", func(d *command.InventoryDatabase) {
		for i := range d.Roles {
			if d.Roles[i].Part == part {
				change(&d.Roles[i])
			}
		}
	})
}

// beside has something be listed beside the databases until a call mends it.
func (p *patient) beside(call string, change func(s *command.Strays)) {
	p.until(call, func(differs func() bool) {
		p.server.ListsStrays(func(s *command.Strays) {
			if differs() {
				change(s)
			}
		})
	})
}

const longAgo = 48 * 60 * 60

// file has one more file be listed until a call mends it.
func (p *patient) file(call, path string) {
	p.until(call, func(differs func() bool) {
		p.server.ListsFiles(func(list []command.StoredFile) []command.StoredFile {
			if differs() {
				list = append(list, command.StoredFile{Path: path, SizeBytes: 7, AgeS: longAgo})
			}
			return list
		})
	})
}

// files has the files of the database's backup be listed otherwise.
func (p *patient) files(change func([]command.StoredFile) []command.StoredFile) {
	p.server.ListsFiles(change)
}

// without leaves out the files with an ending.
func without(ending string) func([]command.StoredFile) []command.StoredFile {
	return func(list []command.StoredFile) []command.StoredFile {
		return slices.DeleteFunc(list, func(f command.StoredFile) bool { return strings.HasSuffix(f.Path, ending) })
	}
}

// over is an operation that has ended without leaving anything at the agent.
func (p *patient) over() id.OperationID {
	must(p.Backups.Start(p.ctx, p.reached(p.db.ID)))(p.t)
	o := p.openOnes()[0].ID
	must(p.Operator.CancelOperation(p.ctx, o))(p.t)
	return o
}

func (p *patient) agent() ports.Agent { return must(p.fleet.Agent(p.machine))(p.t) }

// status gives the record a status.
func (p *patient) status(s database.Status) {
	p.inStore(func(ctx context.Context, tx ports.Tx) error {
		r, err := tx.Databases().Lock(ctx, p.db.ID)
		if r.Status = s; err == nil {
			err = tx.Databases().Save(ctx, r)
		}
		return err
	})
}

const strange = "somebody"

// ailments are what makes each kind of finding. Where the kind has a repair, the call with which the agent mends it is the fake's
// own, or stands in the case.
var ailments = map[doctor.Code]func(p *patient){
	doctor.ServerUnreachable: func(p *patient) { p.server.SetUnreachable(true) },
	doctor.ServerRefuses:     func(p *patient) { p.refusing("AskStrays", command.ReasonUnavailable) },
	doctor.StorageAway:       func(p *patient) { p.server.SetStorage("it does not answer") },
	doctor.OtherProtocol:     func(p *patient) { p.outdated(true) },
	doctor.ListCut:           func(p *patient) { p.beside("", func(s *command.Strays) { s.Cut = true }) },

	doctor.StatusStuck:     func(p *patient) { p.status(database.Deleting) },
	doctor.DatabaseMissing: func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.Made = false }) },
	doctor.DatabaseUnknown: func(p *patient) {
		p.database("", func(d *command.InventoryDatabase) { d.DatabaseID = "00000000-0000-4000-8000-000000000000" })
	},
	doctor.DatabaseElsewhere: func(p *patient) { // a move of which the metadata know nothing any more has begun to make it
		other, _ := p.another("two", 0)
		restore := p.store.Backup()
		must(p.Operator.MoveDatabase(p.ctx, moves.Request{DatabaseID: p.db.ID, To: other.ID}, anOrder))(p.t)
		p.runOnce()
		restore()
		for _, s := range []server.Server{p.machine, other} {
			ok(p.t, p.Operator.ConfirmMetadata(p.ctx, s, anOrder))
		}
		p.machine = other
	},
	doctor.DatabaseGone:     func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.Actual = nil }) },
	doctor.DatabaseRenamed:  func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.Actual.Name = strange }) },
	doctor.DatabaseOwner:    func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.Actual.Owner = strange }) },
	doctor.RoleModelDiffers: func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.RoleModel = strange }) },
	doctor.CapDiffers:       func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.ConnectionCap++ }) },
	doctor.LimitDiffers:     func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.Actual.ConnectionLimit++ }) },
	doctor.ConnectionsDiffer: func(p *patient) {
		p.database("", func(d *command.InventoryDatabase) { d.Actual.AllowConnections = false })
	},
	doctor.PublicRights: func(p *patient) {
		p.database("", func(d *command.InventoryDatabase) { d.Actual.PublicRights = []string{"connect"} })
	},
	doctor.OwnerRights:      func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.Actual.LoginRights = nil }) },
	doctor.BackupKeyDiffers: func(p *patient) { p.database("", func(d *command.InventoryDatabase) { d.BackupKeyMark = strange }) },
	doctor.ServiceDiffers: func(p *patient) {
		ok(p.t, ports.Tell(p.ctx, p.agent(), ports.Fence{OperationID: "another"}, command.Isolate{DatabaseID: p.db.ID}))
	},
	doctor.AccountDiffers: func(p *patient) {
		p.database("SetAccounts", func(d *command.InventoryDatabase) { d.AccountID = strange })
	},
	doctor.AccessDiffers:    func(p *patient) { p.server.SetOpen(p.db.ID, false) },
	doctor.LoginDiffers:     func(p *patient) { p.server.SetOpen(p.db.ID, false) },
	doctor.GateDiffers:      func(p *patient) { p.server.SetOpen(p.db.ID, false) },
	doctor.AllowlistDiffers: func(p *patient) { p.server.Rewind(p.db.ID) },
	doctor.SettingsDiffer:   func(p *patient) { p.server.Rewind(p.db.ID) },
	doctor.SettingDiffers: func(p *patient) {
		p.database("Configure", func(d *command.InventoryDatabase) { d.Actual.Settings = nil })
	},

	doctor.RoleMissing: func(p *patient) {
		p.database("", func(d *command.InventoryDatabase) { d.Roles = d.Roles[1:] })
	},
	doctor.RoleGone: func(p *patient) { p.role(command.PartRuntime, func(r *command.InventoryRole) { r.Actual = nil }) },
	doctor.RoleUnknown: func(p *patient) {
		p.role(command.PartRuntime, func(r *command.InventoryRole) { r.Part = command.PartOwner })
	},
	doctor.RolePowers: func(p *patient) {
		p.role(command.PartRuntime, func(r *command.InventoryRole) { r.Actual.Powers = []string{"createdb"} })
	},
	doctor.RoleLimit: func(p *patient) { p.role(command.PartRuntime, func(r *command.InventoryRole) { r.Limit = 3 }) },
	doctor.LoginLimit: func(p *patient) {
		p.role(command.PartRuntime, func(r *command.InventoryRole) { r.Actual.ConnectionLimit = 3 })
	},
	doctor.LoginEnabled: func(p *patient) {
		p.role(command.PartRuntime, func(r *command.InventoryRole) { r.Enabled = false })
	},
	doctor.CredentialDiffers: func(p *patient) {
		p.role(command.PartRuntime, func(r *command.InventoryRole) { r.CredentialGeneration = 7 })
	},
	doctor.PasswordDiffers: func(p *patient) {
		p.role(command.PartRuntime, func(r *command.InventoryRole) { r.Actual.VerifierMark = strange })
	},
	doctor.ValidityDiffers: func(p *patient) {
		must(p.Roles.Create(p.ctx, p.forRoles(p.db.ID), wanted("report")))(p.t)
		until := p.clock.Now()
		p.role(command.PartAdditional, func(r *command.InventoryRole) { r.Actual.ValidUntil = &until })
	},
	doctor.MembershipMissing: func(p *patient) {
		p.role(command.PartRuntime, func(r *command.InventoryRole) { r.Actual.MemberOf = nil })
	},
	doctor.MembershipUnexpected: func(p *patient) {
		p.role(command.PartOwner, func(r *command.InventoryRole) { r.Actual.MemberOf = []command.Membership{{Role: strange}} })
	},
	doctor.MemberUnexpected: func(p *patient) {
		p.role(command.PartHolder, func(r *command.InventoryRole) { r.Actual.Members = []string{strange} })
	},

	doctor.RightsUnread: func(p *patient) { p.server.SetRights(p.db.ID, command.Rights{Unread: "a lock"}) },
	doctor.SchemaOwner:  func(p *patient) { p.server.SetRights(p.db.ID, command.Rights{PublicOwner: strange}) },
	doctor.SchemaGiven:  func(p *patient) { p.server.SetRights(p.db.ID, command.Rights{}) },
	doctor.GroupRights:  func(p *patient) { p.server.SetRights(p.db.ID, command.Rights{}) },

	doctor.PoolerDown:  func(p *patient) { p.differs("", command.PoolerDown) },
	doctor.PoolerFiles: func(p *patient) { p.differs("SetAllowlist", command.PoolerFiles) },
	doctor.PoolerLive:  func(p *patient) { p.differs("SetAllowlist", command.PoolerLive) },

	doctor.StrayDatabase: func(p *patient) {
		p.beside("", func(s *command.Strays) { s.Databases = []command.StrayDatabase{{Name: "tmp_1"}} })
	},
	doctor.StrayRole: func(p *patient) {
		p.beside("", func(s *command.Strays) { s.Roles = []command.StrayRole{{Name: "pgh_1"}} })
	},
	doctor.CopyLeft: func(p *patient) {
		o := p.over()
		p.beside("Close", func(s *command.Strays) {
			s.Copies = []command.InventoryCopy{{Name: "restore_1", OperationID: o, DatabaseID: p.db.ID, Wanted: true}}
		})
	},
	doctor.JobLeft: func(p *patient) {
		o := p.over()
		p.beside("Close", func(s *command.Strays) {
			s.Jobs = []command.InventoryJob{{OperationID: o, Step: "backup.run", DatabaseID: p.db.ID}}
		})
	},

	doctor.ForwardUnknown: func(p *patient) {
		must(ports.Do(p.ctx, p.agent(), ports.Fence{}, command.Forward{
			DatabaseID: "00000000-0000-4000-8000-000000000000", Name: "former", Host: "two.example.org", Port: 6432,
			Until: p.clock.Now().Add(time.Hour), Generation: 7,
		}))(p.t)
	},
	doctor.ForwardMissing: func(p *patient) { p.left(); p.server.LoseForwards() },
	doctor.ForwardFails: func(p *patient) {
		p.left()
		p.beside("", func(s *command.Strays) { s.Forwards[0].Failure = "it does not answer" })
	},

	doctor.FileMissing: func(p *patient) { p.files(without(".data")) },
	doctor.FileSize: func(p *patient) {
		p.files(func(list []command.StoredFile) []command.StoredFile {
			for i := range list {
				list[i].SizeBytes++
			}
			return list
		})
	},
	doctor.FileIncomplete: func(p *patient) { p.files(without(".manifest")) },
	doctor.FileDamaged: func(p *patient) {
		list := p.backups(p.reached(p.db.ID))
		p.server.Rot(p.db.ID, list[0].Filename)
	},
	doctor.FileUnknown:   func(p *patient) { p.file("", string(p.db.ID)+"/20200102_030405.set") },
	doctor.CompanionLeft: func(p *patient) { p.file("DeleteBackup", string(p.db.ID)+"/20200102_030405.a.manifest") },
	doctor.PartialLeft:   func(p *patient) { p.file("", "spool/"+string(p.db.ID)+"_1") },
	doctor.UploadUnknown: func(p *patient) {
		p.file("DropUpload", "uploads/"+string(p.db.ID)+"_00000000-0000-4000-8000-000000000001.part")
	},
}

// inWorldsOfTheirOwn are kinds of which the tests of archive keys, drills, snapshots, purges and overlays make findings.
var inWorldsOfTheirOwn = []doctor.Code{
	doctor.ArchiveKeyDiffers, doctor.DrillFailed, doctor.SnapshotOld, doctor.PurgeRefused, doctor.OverlayReserved,
}

// left moves the database to another server, and the one that is examined sends on who still comes.
func (p *patient) left() {
	p.t.Helper()
	other, _ := p.another("roomy", 0)
	must(p.Operator.MoveDatabase(p.ctx, moves.Request{DatabaseID: p.db.ID, To: other.ID, Forward: time.Hour}, anOrder))(p.t)
	p.work(p.ControlPlane)
	equal(p.t, "sent on", len(p.server.Forwards()), 1)
}

// differs has PgBouncer differ until a call mends it.
func (p *patient) differs(call, where string) {
	p.beside(call, func(s *command.Strays) { s.Pooler = []command.PoolerDifference{{Where: where, What: "an entry"}} })
}

// Every kind of finding has a case. What the doctor offers to repair it repairs, and then there is nothing; what it does not
// offer it leaves as it is, however often it looks.
func TestEveryRepairEnds(t *testing.T) {
	for _, k := range doctor.Kinds {
		if slices.Contains(inWorldsOfTheirOwn, k.Code) {
			if k.Repair != doctor.Nothing {
				t.Errorf("%s has a repair, and no case", k.Code)
			}
			continue
		}
		ails, has := ailments[k.Code]
		if !has {
			t.Errorf("%s has no case", k.Code)
			continue
		}
		t.Run(string(k.Code), func(t *testing.T) {
			w, db := treated(t)
			p := &patient{w, db}
			ails(p)
			found := w.examined(checkups.Options{Deep: true})
			if !slices.ContainsFunc(found, func(d checkups.Diagnosis) bool { return d.Code == k.Code }) {
				t.Fatalf("it is not found: %v", found)
			}
			left := 0
			for _, d := range w.examined(checkups.Options{Deep: true, Repair: true}) {
				if offered := d.Repair() != doctor.Nothing; offered != d.Repaired || d.Failed != nil {
					t.Errorf("%s: a repair is offered: %t; repaired: %t, %v", d, offered, d.Repaired, d.Failed)
				} else if !offered {
					left++
				}
				if d.Code == k.Code && (d.Repair() == doctor.Nothing) != (k.Repair == doctor.Nothing) {
					t.Errorf("%s: the repair is %q", d, d.Repair())
				}
			}
			again := w.examined(checkups.Options{Deep: true, Repair: true})
			if len(again) != left || slices.ContainsFunc(again, func(d checkups.Diagnosis) bool { return d.Repair() != doctor.Nothing }) {
				t.Errorf("%d findings were left, and then there are %v", left, again)
			}
			if k.Repair != doctor.Nothing && len(again) > 0 {
				t.Errorf("once it is repaired: %v", again)
			}
		})
	}
}

// Of what is out of service, and of what the ledger has otherwise, no repair is offered that would be refused, or change nothing.
func TestRepairsThatWouldBeRefused(t *testing.T) {
	for name, change := range map[string]func(p *patient){
		"a deleted database is open": func(p *patient) {
			p.deletedNow()
			p.database("", func(d *command.InventoryDatabase) { d.Open = true })
		},
		"a deleted database has other settings": func(p *patient) {
			p.deletedNow()
			p.database("", func(d *command.InventoryDatabase) { d.Actual.Settings = nil })
		},
		"a login of a deleted database": func(p *patient) {
			p.deletedNow()
			p.role(command.PartOwner, func(r *command.InventoryRole) { r.Gate, r.Actual.MayLogIn = command.GateOpen, true })
		},
		"a deleted database is in service": func(p *patient) {
			p.deletedNow()
			rejoin := command.Rejoin{DatabaseID: p.db.ID, Open: true}
			must(ports.Do(p.ctx, p.agent(), ports.Fence{OperationID: "another"}, rejoin))(p.t)
		},
		"a login without a gate": func(p *patient) {
			p.role(command.PartOwner, func(r *command.InventoryRole) { r.Gate = "" })
		},
		"a login that the ledger shuts out": func(p *patient) {
			p.role(command.PartOwner, func(r *command.InventoryRole) { r.Enabled, r.Gate = false, command.GateClosed })
		},
		"a holder that may log in": func(p *patient) {
			p.role(command.PartHolder, func(r *command.InventoryRole) { r.Actual.MayLogIn = true })
		},
		"a pooler without a database in service": func(p *patient) {
			p.deletedNow()
			p.differs("SetAllowlist", command.PoolerFiles)
		},
		"a companion while the metadata are behind": func(p *patient) {
			restore := p.store.Backup()
			must(p.Databases.SetLifecycle(p.ctx, p.reached(p.db.ID), database.Restart))(p.t)
			restore()
			p.file("", string(p.db.ID)+"/20200102_030405.a.manifest")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, db := treated(t)
			change(&patient{w, db})
			found := w.examined(checkups.Options{Repair: true})
			if len(found) == 0 {
				t.Fatal("nothing is found")
			}
			for _, d := range found {
				if d.Repair() != doctor.Nothing || d.Failed != nil {
					t.Errorf("%s: the repair %q is offered: %v", d, d.Repair(), d.Failed)
				}
			}
		})
	}
}

// deletedNow deletes the database.
func (p *patient) deletedNow() {
	p.t.Helper()
	must(p.Operator.DeleteUnverified(p.ctx, p.db.ID, "ada", "as the test wants it"))(p.t)
	p.work(p.ControlPlane)
}

// A copy of an operation that the agent has completed cannot be closed: what was kept for it goes all the same.
func TestACopyOfACompletedOperation(t *testing.T) {
	w, db := treated(t)
	p := &patient{w, db}
	o := p.over()
	p.beside("Discard", func(s *command.Strays) {
		s.Copies = []command.InventoryCopy{{Name: "replaced_1", OperationID: o, DatabaseID: db.ID, Wanted: true}}
	})
	mended := false
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		switch c.Method {
		case "Close":
			f.Before = command.Refuse(command.ReasonCompleted, "it is done")
		case "Discard":
			mended = true
			w.server.ListsStrays(nil)
		}
		return f
	})
	for _, d := range w.examined(checkups.Options{Repair: true}) {
		if !mended || d.Code != doctor.CopyLeft {
			t.Errorf("%s: %v", d, d.Failed)
		}
	}
	w.wantFindings()
}

// The agent is silent for one look: what the others have found is told, and what was repaired is only so if somebody could look.
func TestTheDoctorOfAnAgentThatIsSilentOnce(t *testing.T) {
	for silent := range 4 {
		w, db := treated(t)
		w.server.Lists(func(d *command.InventoryDatabase) { d.Actual.ConnectionLimit++ })
		looks := -1
		w.inEveryCall("AskCapabilities", func() (f fakeagent.Fault) {
			if looks++; looks == silent {
				f.Before = ports.ErrAgentUnreachable
			}
			return f
		})
		var codes []doctor.Code
		for _, d := range w.examined(brief) {
			codes = append(codes, d.Code)
		}
		if !slices.Contains(codes, doctor.LimitDiffers) {
			t.Errorf("silent in look %d: found %v of %s", silent, codes, db.Name)
		}
	}
}

// A repair after which the agent is silent is not one that has helped.
func TestARepairThatNobodySees(t *testing.T) {
	w, db := treated(t)
	w.server.SetOpen(db.ID, false)
	w.server.OnCall(func(_ context.Context, c fakeagent.Call) (f fakeagent.Fault) {
		if c.Method == "SetAccess" {
			f.Then = func() { w.server.SetUnreachable(true) }
		}
		return f
	})
	for _, d := range w.examined(checkups.Options{Repair: true}) {
		if d.Repaired || d.Failed == nil {
			t.Errorf("%s: repaired is %t, %v", d, d.Repaired, d.Failed)
		}
	}
}
