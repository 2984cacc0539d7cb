package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
}

// FilesOf are the files of a database.
type FilesOf struct {
	Name    string
	Busy    bool // as of Database
	Backups []backup.Backup
	// Names are those that are in use, with those of backups that are being deleted.
	Names []backup.Filename
}

// The endings of the files of a backup, and what begins the path of an upload.
const (
	dataEnding     = ".sql.gz"
	sidecarEnding  = ".schema.sql.gz"
	manifestEnding = ".manifest.json"
	verifiedEnding = ".verified.json"
	partialEnding  = ".partial"
	uploads        = "uploads/"
	partEnding     = ".part"
)

// strayAge is how old a file must be, in seconds, before it is removed.
const strayAge = 24 * 60 * 60

// set are the files of one backup by their endings.
type set map[string]command.StoredFile

// ExamineFiles compares files with the records.
func ExamineFiles(want Files, has []command.StoredFile) (found []Finding) {
	sets := map[id.DatabaseID]map[string]set{}
	for _, f := range has {
		if strings.HasPrefix(f.Path, uploads) {
			found = append(found, want.upload(f)...)
			continue
		}
		db, stem, ending, ok := parsePath(f.Path)
		switch {
		case !ok && want.Databases[db].Busy:
		case !ok && strings.HasSuffix(f.Path, partialEnding):
			found = append(found, Finding{Code: PartialLeft, DatabaseID: db, Subject: f.Path})
		case !ok:
			found = append(found, Finding{Code: FileUnknown, DatabaseID: db, Subject: f.Path})
		default:
			if sets[db] == nil {
				sets[db] = map[string]set{}
			}
			if sets[db][stem] == nil {
				sets[db][stem] = set{}
			}
			sets[db][stem][ending] = f
		}
	}
	for _, db := range slices.Sorted(maps.Keys(want.Databases)) {
		if of := want.Databases[db]; !of.Busy {
			found = append(found, of.missing(db, sets[db])...)
		}
	}
	for _, db := range slices.Sorted(maps.Keys(sets)) {
		if of := want.Databases[db]; !of.Busy {
			found = append(found, of.unknown(db, sets[db])...)
		}
	}
	return found
}

// parsePath takes the path of a file of a backup apart. Of any other the database is told, where it is in a database's folder.
func parsePath(path string) (db id.DatabaseID, stem, ending string, ok bool) {
	folder, name, _ := strings.Cut(path, "/")
	db, err := id.Parse[id.DatabaseID](folder)
	if err != nil {
		return "", "", "", false
	}
	for _, ending := range []string{sidecarEnding, manifestEnding, verifiedEnding, dataEnding} { // the longer one first
		if stem, found := strings.CutSuffix(name, ending); found {
			_, err := backup.ParseFilename(stem + dataEnding)
			return db, stem, ending, err == nil
		}
	}
	return db, "", "", false
}

// missing says which files of backups are not there, or are not whole.
func (of FilesOf) missing(db id.DatabaseID, has map[string]set) (found []Finding) {
	for _, b := range of.Backups {
		files := has[b.Filename.Stem()]
		say := func(c Code, want, has string) {
			found = append(found, Finding{
				Code: c, DatabaseID: db, Subject: string(b.Filename) + " of " + of.Name, Want: want, Has: has, Filename: b.Filename,
			})
		}
		data, there := files[dataEnding]
		switch {
		case !there:
			say(FileMissing, "", "")
			continue
		case data.SizeBytes != b.SizeBytes:
			say(FileSize, strconv.FormatInt(b.SizeBytes, 10), strconv.FormatInt(data.SizeBytes, 10))
		}
		if _, there := files[manifestEnding]; !there {
			say(FileIncomplete, "manifest", "")
		}
		if _, there := files[sidecarEnding]; !there && b.RoleManifest {
			say(FileIncomplete, "schema", "")
		}
	}
	return found
}

// unknown says which files no backup accounts for. What could be a backup is never removed.
func (of FilesOf) unknown(db id.DatabaseID, has map[string]set) (found []Finding) {
	for _, stem := range slices.Sorted(maps.Keys(has)) {
		name := backup.Filename(stem + dataEnding)
		if slices.Contains(of.Names, name) {
			continue
		}
		data, whole := has[stem][dataEnding]
		if whole {
			found = append(found, Finding{
				Code: FileUnknown, DatabaseID: db, Subject: data.Path, Has: fmt.Sprintf("%d bytes", data.SizeBytes), NoRepair: true,
			})
			continue
		}
		for _, ending := range slices.Sorted(maps.Keys(has[stem])) {
			f := has[stem][ending]
			found = append(found, Finding{
				Code: CompanionLeft, DatabaseID: db, Subject: f.Path, Filename: name, NoRepair: f.AgeS < strayAge,
			})
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
