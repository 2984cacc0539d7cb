package cluster

// ChildUser says which system user children run as where the caller is root. switched is false for every other caller: the
// children then run as the caller.
func ChildUser() (uid, gid int, switched bool, err error) {
	who, err := childUser()
	return int(who.uid), int(who.gid), who.switched, err
}
