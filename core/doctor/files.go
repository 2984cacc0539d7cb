package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/upload"
)

// Files is what the metadata say of the files of a server's databases.
type Files struct {
	// Databases are those of the server.
	Databases map[id.DatabaseID]FilesOf
	// Uploads are those that have a record.
	Uploads map[id.UploadID]upload.Upload
	// Behind says that the metadata lack operations that the server has heard of: until an operator has confirmed that they count,
	// it removes no file.
	Behind bool
}

// FilesOf are the files of a database.
type FilesOf struct {
	Name    string
	Busy    bool // as of Database
	Backups []backup.Backup
	// Names are those that are in use, with those of backups that are being deleted.
	Names []backup.Filename
}

// The endings of the blobs of a backup, what begins the path of an upload, and what those of files that are being written, and of
// those that only an operation uses.
const (
	recordEnding   = "set"
	dataEnding     = "data"
	schemaEnding   = "schema"
	manifestEnding = "manifest"
	verifiedEnding = "verified"
	uploads        = "uploads/"
	partEnding     = ".part"
	spool          = "spool/"
	passing        = "passing/"
	try            = "try."  // of a look whether blobs can be stored, which the agent removes
	owner          = "owner" // whose the blobs are
)

// strayAge is how old a file must be, in seconds, before it is removed.
const strayAge = 24 * 60 * 60

// set are the blobs of one backup. Without a record they are no backup.
type set struct {
	record *command.StoredFile
	// attempts are the others by the attempt that made them, and by their endings. The record names one of these; what is left of
	// others the agent removes.
	attempts map[string]map[string]command.StoredFile
}

// sets are those of a database, by their stems.
type sets map[string]*set

func (s sets) add(stem, attempt, ending string, f command.StoredFile) {
	of := s[stem]
	if of == nil {
		of = &set{attempts: map[string]map[string]command.StoredFile{}}
		s[stem] = of
	}
	if ending == recordEnding {
		of.record = &f
		return
	}
	if of.attempts[attempt] == nil {
		of.attempts[attempt] = map[string]command.StoredFile{}
	}
	of.attempts[attempt][ending] = f
}

// ExamineFiles compares files with the records.
func ExamineFiles(want Files, has []command.StoredFile) (found []Finding) {
	all := map[id.DatabaseID]sets{}
	for _, f := range has {
		switch {
		case f.Path == owner || strings.HasPrefix(f.Path, try):
			continue
		case strings.HasPrefix(f.Path, uploads):
			found = append(found, want.upload(f)...)
			continue
		case strings.HasPrefix(f.Path, spool), strings.HasPrefix(f.Path, passing):
			found = append(found, want.working(f)...)
			continue
		}
		db, stem, attempt, ending, ok := parsePath(f.Path)
		switch {
		case !ok && want.Databases[db].Busy:
		case !ok:
			found = append(found, Finding{Code: FileUnknown, DatabaseID: db, Subject: f.Path})
		default:
			if all[db] == nil {
				all[db] = sets{}
			}
			all[db].add(stem, attempt, ending, f)
		}
	}
	for _, db := range slices.Sorted(maps.Keys(want.Databases)) {
		if of := want.Databases[db]; !of.Busy {
			found = append(found, of.missing(db, all[db])...)
		}
	}
	for _, db := range slices.Sorted(maps.Keys(all)) {
		if of := want.Databases[db]; !of.Busy {
			found = append(found, of.unknown(db, all[db], want.Behind)...)
		}
	}
	return found
}

// Folders are the databases of which there are files of backups, sorted.
func Folders(has []command.StoredFile) []id.DatabaseID {
	all := map[id.DatabaseID]bool{}
	for _, f := range has {
		if db, _, _, _, ok := parsePath(f.Path); ok {
			all[db] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Unrecorded are the backups of a database among the files of an agent whose names no record has, the oldest first.
func Unrecorded(db id.DatabaseID, has []command.StoredFile, known []backup.Filename) (list []backup.Filename) {
	for _, f := range has {
		of, stem, _, ending, ok := parsePath(f.Path)
		name := backup.Filename(stem + backup.FileSuffix)
		if ok && ending == recordEnding && of == db && !slices.Contains(known, name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// working says what is left of an operation although none is open. In the spool, the name of a file begins with its database, and
// what passes is in a folder of its name. The backup with which an extension is tried is of no database.
func (want Files) working(f command.StoredFile) []Finding {
	_, name, _ := strings.Cut(f.Path, "/")
	folder, _, _ := strings.Cut(strings.Replace(name, "_", "/", 1), "/")
	db, err := id.Parse[id.DatabaseID](folder)
	if err != nil {
		db = ""
	}
	of, known := want.Databases[db]
	if of.Busy || !known && f.AgeS < strayAge {
		return nil
	}
	return []Finding{{Code: PartialLeft, DatabaseID: db, Subject: f.Path}}
}

// parsePath takes the path of a blob of a backup apart. Of any other the database is told, where it is in a database's folder.
func parsePath(path string) (db id.DatabaseID, stem, attempt, ending string, ok bool) {
	folder, name, _ := strings.Cut(path, "/")
	db, err := id.Parse[id.DatabaseID](folder)
	if err != nil {
		return "", "", "", "", false
	}
	parts := strings.Split(name, ".")
	_, err = backup.ParseFilename(parts[0] + backup.FileSuffix)
	switch {
	case err != nil:
	case len(parts) == 2 && parts[1] == recordEnding:
		return db, parts[0], "", recordEnding, true
	case len(parts) == 3 && slices.Contains([]string{dataEnding, schemaEnding, manifestEnding, verifiedEnding}, parts[2]):
		return db, parts[0], parts[1], parts[2], true
	}
	return db, "", "", "", false
}

// blobs are those of the attempt that has the data, of the expected size where there are several.
func (s *set) blobs(size int64) (found map[string]command.StoredFile) {
	if s == nil || s.record == nil {
		return nil
	}
	for _, attempt := range slices.Sorted(maps.Keys(s.attempts)) {
		data, there := s.attempts[attempt][dataEnding]
		if there && (found == nil || data.SizeBytes == size) {
			found = s.attempts[attempt]
		}
	}
	return found
}

// missing says which blobs of backups are not there, or are not whole.
func (of FilesOf) missing(db id.DatabaseID, has sets) (found []Finding) {
	for _, b := range of.Backups {
		blobs := has[b.Filename.Stem()].blobs(b.SizeBytes)
		say := func(c Code, want, has string) {
			found = append(found, Finding{
				Code: c, DatabaseID: db, Subject: string(b.Filename) + " of " + of.Name, Want: want, Has: has, Filename: b.Filename,
			})
		}
		if b.DamagedAt != nil {
			say(FileDamaged, "", "as was found "+b.DamagedAt.UTC().Format(time.DateTime))
			continue
		}
		switch {
		case blobs == nil:
			say(FileMissing, "", "")
			continue
		case blobs[dataEnding].SizeBytes != b.SizeBytes:
			say(FileSize, strconv.FormatInt(b.SizeBytes, 10), strconv.FormatInt(blobs[dataEnding].SizeBytes, 10))
		}
		if _, there := blobs[manifestEnding]; !there {
			say(FileIncomplete, "manifest", "")
		}
		if _, there := blobs[schemaEnding]; !there && b.RoleManifest {
			say(FileIncomplete, "schema", "")
		}
	}
	return found
}

// unknown says which blobs no backup accounts for. What could be a backup is never removed.
func (of FilesOf) unknown(db id.DatabaseID, has sets, behind bool) (found []Finding) {
	for _, stem := range slices.Sorted(maps.Keys(has)) {
		name := backup.Filename(stem + backup.FileSuffix)
		if slices.Contains(of.Names, name) {
			continue
		}
		if r := has[stem].record; r != nil {
			found = append(found, Finding{Code: FileUnknown, DatabaseID: db, Subject: r.Path, NoRepair: true})
			continue
		}
		for _, attempt := range slices.Sorted(maps.Keys(has[stem].attempts)) {
			for _, ending := range slices.Sorted(maps.Keys(has[stem].attempts[attempt])) {
				f := has[stem].attempts[attempt][ending]
				found = append(found, Finding{
					Code: CompanionLeft, DatabaseID: db, Subject: f.Path, Filename: name, NoRepair: behind || f.AgeS < strayAge,
				})
			}
		}
	}
	return found
}

// ParseUpload reads the path of an upload's file.
func ParseUpload(path string) (db id.DatabaseID, of id.UploadID, ok bool) {
	name, isUpload := strings.CutPrefix(path, uploads)
	text, isPart := strings.CutSuffix(name, partEnding)
	first, second, _ := strings.Cut(text, "_")
	db, dbErr := id.Parse[id.DatabaseID](first)
	of, err := id.Parse[id.UploadID](second)
	return db, of, isUpload && isPart && dbErr == nil && err == nil
}

func (want Files) upload(f command.StoredFile) []Finding {
	db, of, ok := ParseUpload(f.Path)
	if !ok {
		return []Finding{{Code: FileUnknown, Subject: f.Path}}
	}
	if record, known := want.Uploads[of]; known && record.DatabaseID == db {
		return nil
	}
	return []Finding{{
		Code: UploadUnknown, DatabaseID: db, Subject: f.Path, Has: fmt.Sprintf("%d bytes", f.SizeBytes), Upload: of,
		NoRepair: f.AgeS < strayAge,
	}}
}
