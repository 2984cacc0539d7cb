package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// runAs is the user that children run as. The zero value means the caller's own user.
type runAs struct {
	uid, gid uint32
	switched bool
}

// nobody is the unprivileged user that every system has under this number, whether it is named in its user list or not.
const nobody = 65534

// childUser says which user children run as: the caller's own, except for root.
func childUser() (runAs, error) {
	if os.Geteuid() != 0 {
		return runAs{}, nil
	}
	name := os.Getenv("PGHERD_RUN_AS")
	if name == "" {
		return runAs{uid: nobody, gid: nobody, switched: true}, nil
	}
	entry, err := user.Lookup(name)
	if err != nil {
		return runAs{}, fmt.Errorf("PGHERD_RUN_AS: %w", err)
	}
	uid, uidErr := strconv.ParseUint(entry.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(entry.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return runAs{}, fmt.Errorf("PGHERD_RUN_AS: %w", err)
	}
	if uid == 0 {
		return runAs{}, errors.New("PGHERD_RUN_AS names root, which PostgreSQL and PgBouncer refuse")
	}
	return runAs{uid: uint32(uid), gid: uint32(gid), switched: true}, nil
}

// Own gives files and folders, with all that is in them, to the user that children run as. It does nothing where the caller is
// not root, since the children then run as the caller.
func Own(paths ...string) error {
	who, err := childUser()
	if err != nil || !who.switched {
		return err
	}
	for _, path := range paths {
		err := filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(name, int(who.uid), int(who.gid)) //nolint:gosec // Lchown follows no link; the tree is the caller's own.
		})
		if err != nil {
			return fmt.Errorf("hand %s to the user that runs it: %w", path, err)
		}
	}
	return nil
}

// reaches says whether the user can get to every path, which needs the search bit on each folder above it.
func (who runAs) reaches(paths ...string) bool {
	for _, path := range paths {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if !who.mayEnter(dir) {
				return false
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return true
}
