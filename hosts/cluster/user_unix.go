//go:build unix

package cluster

import (
	"os"
	"syscall"
)

// mayEnter says whether the search bit of a folder is set for the user. Where the folder cannot be read, it is not.
func (who runAs) mayEnter(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	switch mode := info.Mode(); {
	case owner.Uid == who.uid:
		return mode&0o100 != 0
	case owner.Gid == who.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
