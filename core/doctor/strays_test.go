package doctor

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
)

// of says what the metadata know of operations.
var of = map[id.OperationID]Operation{openOp: {Known: true, Open: true, Epoch: 3}, doneOp: {Known: true, Epoch: 3}}

type (
	all    = command.Strays
	copies = []command.InventoryCopy
	pooler = []command.PoolerDifference
	files  = []command.StoredFile
)

// leftovers are what a server has beside its databases, and what is found of it.
var leftovers = []struct {
	what    string
	has     command.Strays
	codes   []Code
	repairs bool
	lacking bool // the metadata do not have it: it is not repaired before they count
}{
	{what: "nothing"},
	{what: "more than is listed", has: all{Cut: true}, codes: []Code{ListCut}},
	{what: "a database", has: all{Databases: []command.StrayDatabase{{Name: "tmp_1"}}}, codes: []Code{StrayDatabase}},
	{what: "a database that is being made",
		has: all{Databases: []command.StrayDatabase{{Name: "tmp_1", OperationID: openOp}}}},
	{what: "a role", has: all{Roles: []command.StrayRole{{Name: "pgh_1", OperationID: doneOp}}}, codes: []Code{StrayRole}},
	{what: "a login at work", has: all{Roles: []command.StrayRole{{Name: "dump_1", OperationID: openOp}}}},
	{what: "a copy at work", has: all{Copies: copies{{Name: "restore_1", OperationID: openOp, Wanted: true}}}},
	{what: "a copy that is kept", has: all{Copies: copies{{Name: "restore_1", OperationID: doneOp, Wanted: true}}},
		codes: []Code{CopyLeft}, repairs: true},
	{what: "a copy that the agent is to drop",
		has: all{Copies: copies{{Name: "restore_1", OperationID: doneOp}}}, codes: []Code{CopyLeft}},
	{what: "a copy of an operation without a record",
		has:   all{Copies: copies{{Name: "restore_1", OperationID: noOp, Wanted: true}}},
		codes: []Code{CopyLeft}, repairs: true, lacking: true},
	{what: "a job without a record that is spoken of", has: all{
		Jobs:       []command.InventoryJob{{OperationID: noOp, Step: "backup.run"}},
		Operations: []command.InventoryOperation{{OperationID: noOp, Epoch: 3, SilentS: 1}},
	}, codes: []Code{JobLeft}, repairs: true, lacking: true},
	{what: "a trial of an operator's", has: all{
		Jobs:       []command.InventoryJob{{OperationID: noOp, Step: "extension.qualify"}},
		Operations: []command.InventoryOperation{{OperationID: noOp, SilentS: trialSilence - 1}},
	}},
	{what: "a trial that nobody speaks of", has: all{
		Jobs:       []command.InventoryJob{{OperationID: noOp, Step: "extension.qualify"}},
		Operations: []command.InventoryOperation{{OperationID: noOp, SilentS: trialSilence}},
	}, codes: []Code{JobLeft}, repairs: true, lacking: true},
	{what: "what a trial has made", has: all{
		Databases:  []command.StrayDatabase{{Name: "qualify_1", OperationID: noOp}},
		Operations: []command.InventoryOperation{{OperationID: noOp}},
	}},
	{what: "a job", has: all{Jobs: []command.InventoryJob{{OperationID: doneOp, Step: "backup.run"}}},
		codes: []Code{JobLeft}, repairs: true},
	{what: "no pooler", has: all{Pooler: pooler{{Where: command.PoolerDown, What: "it"}}},
		codes: []Code{PoolerDown}},
	{what: "files", has: all{Pooler: pooler{{Where: command.PoolerFiles, What: "entry", Database: "shop"}}},
		codes: []Code{PoolerFiles}, repairs: true},
	{what: "what the pooler uses", has: all{Pooler: pooler{{Where: command.PoolerLive, What: "mark"}}},
		codes: []Code{PoolerLive}, repairs: true},
	{what: "an entry of a database at work",
		has: all{Pooler: pooler{{Where: command.PoolerLive, What: "entry", Database: "busy"}}}},
}

func strayCodes() (all []Code) {
	for _, l := range leftovers {
		all = append(all, l.codes...)
	}
	return all
}

func TestExamineStrays(t *testing.T) {
	for _, l := range leftovers {
		t.Run(l.what, func(t *testing.T) {
			for _, behind := range []bool{false, true} {
				found := ExamineStrays(l.has, of, Around{
					Busy: map[string]bool{"busy": true, "shop": false}, Serves: true, Behind: behind,
				})
				wantCodes(t, found, l.codes...)
				for _, f := range found {
					want := l.repairs && (!behind || !l.lacking)
					if repairs := f.Repair() != Nothing; repairs != want {
						t.Errorf("%s: it is repaired: %t, want %t", f.Code, repairs, want)
					}
					op := map[bool]id.OperationID{false: doneOp, true: noOp}[l.lacking]
					if f.Repair() == CloseOperation && f.OperationID != op {
						t.Errorf("it would close %s", f.OperationID)
					}
					if f.Repair() == CloseOperation && !l.lacking && f.Epoch != 3 {
						t.Errorf("it would close it at epoch %d", f.Epoch)
					}
				}
			}
		})
	}
}

const (
	theirs = string(patient) + "/"
	first  = backup.Filename("20300102_030405.sql.gz")
	gone   = backup.Filename("20300102_030406.sql.gz")
	sent   = id.UploadID("00000000-0000-4000-8000-0000000000a0")
)

func stored(path string, bytes int64) command.StoredFile {
	return command.StoredFile{Path: path, SizeBytes: bytes, AgeS: strayAge}
}

// whole is what a server has of the one backup and the one upload that there are.
func whole() files {
	return files{
		stored(theirs+"20300102_030405.a.data", 7), stored(theirs+"20300102_030405.a.schema", 1),
		stored(theirs+"20300102_030405.a.manifest", 1), stored(theirs+"20300102_030405.a.verified", 1),
		stored(theirs+"20300102_030405.set", 1), stored("owner", 1),
		stored("uploads/"+string(patient)+"_"+string(sent)+".part", 3),
	}
}

// fileDamages are what can be wrong with files.
var fileDamages = []struct {
	what    string
	do      func(files files, want *Files) files
	codes   []Code
	repairs bool
}{
	{what: "nothing", do: func(f files, _ *Files) files { return f }},
	{what: "no data", do: func(f files, _ *Files) files { return f[1:] }, codes: []Code{FileMissing}},
	{what: "no record", do: func(f files, _ *Files) files { return slices.Delete(f, 4, 5) }, codes: []Code{FileMissing}},
	{what: "what is left of another attempt", do: func(f files, _ *Files) files {
		return append(f, stored(theirs+"20300102_030405.0.data", 9), stored(theirs+"20300102_030405.b.data", 8))
	}},
	{what: "a look whether blobs can be stored", do: func(f files, _ *Files) files { return append(f, stored("try.x", 1)) }},
	{what: "another size", do: func(f files, _ *Files) files { f[0].SizeBytes++; return f },
		codes: []Code{FileSize}},
	{what: "no schema", do: func(f files, _ *Files) files { return slices.Delete(f, 1, 2) },
		codes: []Code{FileIncomplete}},
	{what: "no manifest", do: func(f files, _ *Files) files { return slices.Delete(f, 2, 3) },
		codes: []Code{FileIncomplete}},
	{what: "no schema of a backup of before", do: func(f files, w *Files) files {
		w.Databases[patient].Backups[0].RoleManifest = false
		return slices.Delete(f, 1, 2)
	}},
	{what: "a backup that is being deleted", do: func(f files, _ *Files) files {
		return append(f, stored(theirs+gone.Stem()+".set", 1))
	}},
	{what: "a backup without a record", do: func(f files, _ *Files) files {
		return append(f, stored(theirs+"20300102_030407.set", 1), stored(theirs+"20300102_030407.a.manifest", 1))
	}, codes: []Code{FileUnknown}},
	{what: "a backup of no database", do: func(f files, _ *Files) files {
		return append(f, stored("00000000-0000-4000-8000-000000000002/20300102_030405.set", 1))
	}, codes: []Code{FileUnknown}},
	{what: "somebody's file", do: func(f files, _ *Files) files { return append(f, stored("notes.txt", 1)) },
		codes: []Code{FileUnknown}},
	{what: "an old companion", do: func(f files, _ *Files) files {
		return append(f, stored(theirs+"20300102_030407.a.schema", 1))
	}, codes: []Code{CompanionLeft}, repairs: true},
	{what: "a new companion", do: func(f files, _ *Files) files {
		return append(f, command.StoredFile{Path: theirs + "20300102_030407.a.schema", AgeS: strayAge - 1})
	}, codes: []Code{CompanionLeft}},
	{what: "an unfinished file", do: func(f files, _ *Files) files {
		return append(f, stored("spool/"+string(patient)+"_20300102_030407.a.data", 1))
	}, codes: []Code{PartialLeft}},
	{what: "a file that only a clone needed", do: func(f files, _ *Files) files {
		return append(f, stored("passing/"+string(patient)+"/20300102_030407.a.data", 1))
	}, codes: []Code{PartialLeft}},
	{what: "an old file of a proof", do: func(f files, _ *Files) files {
		return append(f, stored("passing/00000000-0000-4000-8000-000000000003/19700101_000000.set", 1))
	}, codes: []Code{PartialLeft}},
	{what: "a proof under way", do: func(f files, _ *Files) files {
		return append(f, command.StoredFile{Path: "spool/00000000-0000-4000-8000-000000000003_19700101_000000.a.data"})
	}},
	{what: "an upload without a record", do: func(f files, w *Files) files {
		w.Uploads = nil
		return f
	}, codes: []Code{UploadUnknown}, repairs: true},
	{what: "a file among the uploads",
		do: func(f files, _ *Files) files { return append(f, stored("uploads/x", 1)) }, codes: []Code{FileUnknown}},
	{what: "work under way", do: func(_ files, w *Files) files {
		of := w.Databases[patient]
		of.Busy = true
		w.Databases[patient] = of
		return files{stored("spool/"+string(patient)+"_20300102_030407.a.data", 1),
			stored("passing/"+string(patient)+"/20300102_030407.set", 1), stored(theirs+"20300102_030408.set", 1)}
	}},
}

func fileCodes() (all []Code) {
	for _, d := range fileDamages {
		all = append(all, d.codes...)
	}
	return all
}

func TestExamineFiles(t *testing.T) {
	for _, d := range fileDamages {
		t.Run(d.what, func(t *testing.T) {
			want := Files{
				Databases: map[id.DatabaseID]FilesOf{patient: {
					Name: "shop", Backups: []backup.Backup{{DatabaseID: patient, Filename: first, SizeBytes: 7, RoleManifest: true}},
					Names: []backup.Filename{first, gone},
				}},
				Uploads: map[id.UploadID]upload.Upload{sent: {ID: sent, DatabaseID: patient}},
			}
			found := ExamineFiles(want, d.do(whole(), &want))
			wantCodes(t, found, d.codes...)
			for _, f := range found {
				if repairs := f.Repair() != Nothing; repairs != d.repairs {
					t.Errorf("%s: it is repaired: %t, want %t", f.Subject, repairs, d.repairs)
				}
			}
		})
	}
}

// Only what every look shows lasts.
func TestLasting(t *testing.T) {
	a, b := Finding{Code: JobLeft, Subject: "a"}, Finding{Code: JobLeft, Subject: "b"}
	changed := a
	changed.Has = "something else"
	if found := Lasting([]Finding{a, b}, []Finding{changed, b}); len(found) != 1 || !found[0].Same(b) {
		t.Errorf("%v last", found)
	}
}
