package backup

// LargeObjects are all large objects of the database from the OID First to the OID Last. They have the same owner and the same
// grants, so a database in which all are of one owner needs one entry, however many there are.
type LargeObjects struct {
	First  uint32  `json:"first"`
	Last   uint32  `json:"last"`
	Owner  string  `json:"owner"`
	Grants []Grant `json:"grants,omitempty"` // those of each of them; their Object is empty
}
