package cluster

import (
	"os"
	"path/filepath"
)

// ChildUser says which system user children run as where the caller is root. switched is false for every other caller: the
// children then run as the caller.
func ChildUser() (uid, gid int, switched bool, err error) {
	who, err := childUser()
	return int(who.uid), int(who.gid), who.switched, err
}

// Reaches reports whether the user that children run as gets to all of some paths: it may enter each folder above them.
func Reaches(paths ...string) (bool, error) {
	who, err := childUser()
	return err == nil && (!who.switched || who.reaches(paths...)), err
}

// Reachable is a program that PostgreSQL may start, as the user that children run as: itself or, where a folder above it is
// closed to that user, its copy in a folder that is not.
func Reachable(program, folder string) (string, error) {
	who, err := childUser()
	if err != nil || !who.switched || who.reaches(program) {
		return program, err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(folder, filepath.Base(program))
	next := copied + ".new" // what runs cannot be written
	if err := os.WriteFile(next, text, 0o755); err != nil {
		return "", err
	}
	return copied, os.Rename(next, copied)
}
