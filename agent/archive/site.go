package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/agent/loop"
)

// Site is where a lost server comes back: its folder, and beside it the one in which it is made.
type Site struct {
	// As is whom programs run as, for a caller that is root; nil: the caller.
	as      *syscall.Credential
	dataDir string
	work    string
	owner   syscall.Credential // of the server's folder
	lock    *os.File
	state   siteState
	asked   string

	passphrase string
}

// siteState is what was done, in a file of the work's folder, which also says that the folder is a rebuild's.
type siteState struct {
	Stage siteStage `json:"stage"`
	Done  *Rebuilt  `json:"done,omitempty"` // from siteWhole on
	// Asked is what was asked for: a run that asks for something else begins anew.
	Asked string `json:"asked,omitempty"`
}

// siteStage is what is done next.
type siteStage string

const (
	siteBegun     siteStage = "begun"
	siteFetching  siteStage = "fetching"
	siteReplaying siteStage = "replaying"
	siteWhole     siteStage = "whole" // and on its disk
)

const (
	siteSuffix = ".recovering" // of the folder beside
	siteFile   = "pgherd-recover.json"
)

// OpenSite finds out whether a server can come back in a folder, which is empty or not there. The caller closes the site.
func OpenSite(dataDir string) (*Site, error) {
	if !filepath.IsAbs(dataDir) {
		return nil, fmt.Errorf("%q is no absolute path", dataDir)
	}
	s := &Site{dataDir: filepath.Clean(dataDir)}
	if path, err := filepath.EvalSymlinks(s.dataDir); err == nil {
		s.dataDir = path
	}
	s.work = s.dataDir + siteSuffix
	if err := s.findOwner(); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	if err := s.checkPlace(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// findOwner finds out whose the server's folder is, or is to be.
func (s *Site) findOwner() error {
	var of, above unix.Stat_t
	if err := unix.Stat(filepath.Dir(s.dataDir), &above); err != nil {
		return fmt.Errorf("%s: %w", filepath.Dir(s.dataDir), err)
	}
	switch err := unix.Stat(s.dataDir, &of); {
	case errors.Is(err, fs.ErrNotExist):
		of = above
	case err != nil:
		return err
	case of.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is no folder", s.dataDir)
	case of.Dev != above.Dev:
		return fmt.Errorf("%s is where a file system is mounted: name a folder in it", s.dataDir)
	}
	s.owner = syscall.Credential{Uid: of.Uid, Gid: of.Gid}
	if of.Uid == 0 {
		return fmt.Errorf("%s is root's, as whom PostgreSQL does not run: give it to PostgreSQL's system user", s.dataDir)
	}
	switch own := os.Geteuid(); {
	case own == 0:
		s.as = &s.owner
	case uint32(own) != of.Uid:
		return fmt.Errorf("%s is another user's (%s): run this as that user, or as root", s.dataDir, userName(of.Uid))
	}
	return nil
}

func userName(uid uint32) string {
	text := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

// enter makes the folder beside, or finds the one of a rebuild before, and keeps others out of it.
func (s *Site) enter() (err error) {
	if err := os.Mkdir(s.work, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.lock, err = os.Open(s.work); err != nil {
		return err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("%s is being worked on by another one of this command", s.work), s.lock.Close())
	}
	text, err := os.ReadFile(filepath.Join(s.work, siteFile))
	switch {
	case err == nil && json.Unmarshal(text, &s.state) == nil:
		return nil
	case err == nil:
		err = fmt.Errorf("%s cannot be read: remove %s", siteFile, s.work)
	case errors.Is(err, fs.ErrNotExist):
		var list []fs.DirEntry
		if list, err = os.ReadDir(s.work); err == nil && len(list) > 0 {
			err = fmt.Errorf("%s is there, and was not made by this command: move it away", s.work)
		}
	}
	if err == nil {
		err = s.note(siteBegun, nil)
	}
	if err != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// checkPlace refuses a place where something is.
func (s *Site) checkPlace() error {
	list, err := os.ReadDir(s.dataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(list) == 0 || s.isPlaced():
		return nil
	case pidIn(s.dataDir) != 0:
		return fmt.Errorf("a server runs in %s", s.dataDir)
	}
	return fmt.Errorf("%s is not empty: move away what is there (%s), once it is sure that nothing of it is needed",
		s.dataDir, list[0].Name())
}

// isPlaced reports whether a rebuild before was killed after all was done.
func (s *Site) isPlaced() bool {
	if s.state.Stage != siteWhole {
		return false
	}
	_, err := os.Lstat(s.data())
	return errors.Is(err, fs.ErrNotExist)
}

// pidIn is the process of the server that runs in a folder; 0: none does.
func pidIn(folder string) int {
	text, err := os.ReadFile(filepath.Join(folder, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return 0
	}
	return pid
}

// Close lets others in. It leaves no secret and, where nothing was begun, nothing.
func (s *Site) Close() error {
	left := s.Programs()
	if s.state.Stage == siteBegun {
		left = s.work
	}
	return errors.Join(os.RemoveAll(left), s.lock.Close())
}

func (s *Site) data() string { return filepath.Join(s.work, "data") }

func (s *Site) wal() string { return filepath.Join(s.data(), "pg_wal") }

// Programs is a folder for the files of the archive's program.
func (s *Site) Programs() string { return filepath.Join(s.work, "programs") }

// Place is the server as an engine needs it. Where the archive is in a folder that another system user than PostgreSQL's has, the
// programs run as that one, if the caller is root: see finish.
func (s *Site) Place(passphrase, folder string) Place {
	var of unix.Stat_t
	if s.as != nil && folder != "" && unix.Stat(folder, &of) == nil && of.Uid != 0 {
		s.as = &syscall.Credential{Uid: of.Uid, Gid: of.Gid}
	}
	s.passphrase = passphrase
	return Place{DataDir: s.data(), Passphrase: passphrase, As: s.as}
}

// Give makes a file that of whom programs run as.
func (s *Site) Give(path string) error {
	if s.as == nil {
		return nil
	}
	return os.Lchown(path, int(s.as.Uid), int(s.as.Gid))
}

// note writes what is done next.
func (s *Site) note(next siteStage, done *Rebuilt) error {
	state := siteState{Stage: next, Done: done, Asked: s.asked}
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := WriteDurably(filepath.Join(s.work, siteFile), string(text)); err != nil {
		return err
	}
	s.state = state
	return nil
}

// ready makes the folder in which the server is made one that a copy can be fetched into.
func (s *Site) ready(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, orphanTime)
	defer cancel()
	for pidIn(s.data()) != 0 { // a killed rebuild's server ends with it
		if err := loop.Wait(limit, orphanPause); err != nil {
			return fmt.Errorf("a server runs in %s", s.data())
		}
	}
	whole := false // whether what is there can be gone on with
	for _, name := range []string{"PG_VERSION", "backup.manifest"} {
		_, err := os.Lstat(filepath.Join(s.data(), name))
		whole = whole || err == nil
	}
	again := []string{s.data()}
	if whole { // what was replayed must not be taken for the archive's
		again = []string{filepath.Join(s.data(), "postmaster.pid"), s.wal()}
	}
	for _, path := range again {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := os.Mkdir(s.data(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.Give(s.data())
}

const (
	orphanTime  = 20 * time.Second
	orphanPause = 100 * time.Millisecond
)

// finish makes what came back the owner's, and has it all be on the disk.
func (s *Site) finish(done Rebuilt) error {
	if err := os.Remove(filepath.Join(s.data(), "postmaster.opts")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // it has what the replaying server was started with
	}
	if s.as != nil && (s.as.Uid != s.owner.Uid || s.as.Gid != s.owner.Gid) {
		if err := s.handOver(); err != nil {
			return err
		}
	}
	folder, err := os.Open(s.data())
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Syncfs(int(folder.Fd())), folder.Close()); err != nil {
		return err
	}
	return s.note(siteWhole, &done)
}

// handOver gives everything to the owner, with the tablespaces.
func (s *Site) handOver() error {
	roots := []string{s.data()}
	links, err := filepath.Glob(filepath.Join(s.data(), "pg_tblspc", "*"))
	if err != nil {
		return err
	}
	for _, link := range links {
		space, err := filepath.EvalSymlinks(link)
		if err != nil {
			return err
		}
		roots = append(roots, space)
	}
	for _, root := range roots {
		if err := s.handOverBelow(root); err != nil {
			return err
		}
	}
	return nil
}

// handOverBelow leaves the folder for nothing, whatever who has it puts there meanwhile.
func (s *Site) handOverBelow(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.Lchown(path, int(s.owner.Uid), int(s.owner.Gid))
	})
	return errors.Join(err, root.Close())
}

// place gives the server its folder, and removes what was only needed to make it.
func (r *Rebuild) place() (Rebuilt, error) {
	if !r.isPlaced() {
		if err := unix.Rename(r.data(), r.dataDir); err != nil { // os.Rename refuses a folder, be it empty
			return Rebuilt{}, fmt.Errorf("%s: %w", r.dataDir, err)
		}
		if err := syncPath(filepath.Dir(r.dataDir)); err != nil {
			return Rebuilt{}, err
		}
		r.Crash("rebuild.placed")
	}
	return *r.state.Done, os.RemoveAll(r.work)
}
