package pooler

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// Whoever PgBouncer runs as can read its files and nobody else, also where that was somebody else before and the files hold what
// they should already.
func TestFilesAreForPgBouncerOnly(t *testing.T) {
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 65534, 65534
	}
	files := Files{Main: File{"pgbouncer.ini", []byte("main")}, Parts: []File{{"users-x.ini", []byte("part")}}}
	dir := filepath.Join(t.TempDir(), "pooler")
	for _, step := range []struct {
		what         string
		owner        *Owner
		folder, file fs.FileMode
		uid, gid     int
	}{
		{"the agent's own user", nil, 0o700, 0o600, os.Getuid(), os.Getgid()},
		{"a group of the agent's", &Owner{GID: gid, Group: true}, 0o750, 0o640, os.Getuid(), gid},
		{"another user", &Owner{UID: uid, GID: gid}, 0o700, 0o600, uid, gid},
		{"the group again", &Owner{GID: gid, Group: true}, 0o750, 0o640, uid, gid},
	} {
		check.NoError(t, writeFiles(dir, files, step.owner))
		for path, mode := range map[string]fs.FileMode{
			dir: step.folder, filepath.Join(dir, "pgbouncer.ini"): step.file, filepath.Join(dir, "users-x.ini"): step.file,
		} {
			info := check.Must(os.Stat(path))(t)
			of, ok := info.Sys().(*syscall.Stat_t)
			// A file that is written anew is the writer's.
			mine := path != dir && step.owner != nil && step.owner.Group && ok && int(of.Uid) == os.Getuid()
			if !ok || info.Mode().Perm() != mode || int(of.Uid) != step.uid && !mine || int(of.Gid) != step.gid {
				t.Errorf("%s: %s is %v of %d:%d", step.what, path, info.Mode(), of.Uid, of.Gid)
			}
		}
	}
}

func TestTheGroupMayUseTheSocket(t *testing.T) {
	for group, want := range map[bool]string{false: "unix_socket_mode = 0700\n", true: "unix_socket_mode = 0770\n"} {
		set := DefaultSettings()
		set.GroupSocket = group
		if main := string(renderMain(set, "d", "u", "a", "h")); !strings.Contains(main, want) {
			t.Errorf("%v: no line %q", group, want)
		}
	}
}
