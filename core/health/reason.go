package health

// Code says in one word why a server is not as it should be.
type Code string

// The reasons, in the order in which reports list them: what is behind others comes first.
const (
	NotInitialized    Code = "not_initialized"
	PostgresDown      Code = "postgres_unreachable"
	NotInCharge       Code = "not_in_charge"
	OtherProtocol     Code = "other_protocol"
	PoolerLeaving     Code = "pgbouncer_shutting_down"
	PoolerHangs       Code = "pgbouncer_hangs"
	PoolerDown        Code = "pgbouncer_unreachable"
	ReloadRefused     Code = "pgbouncer_reload_refused"
	LoginFailing      Code = "customer_login_failing"
	CertificateEnded  Code = "certificate_ended"
	DumpUnusable      Code = "pg_dump_unusable"
	BackupsUnwritable Code = "backup_folder_unwritable"
	BackupsFull       Code = "backup_storage_full"
	ArchiveNotReady   Code = "archive_not_ready"
	ArchiveFailing    Code = "archive_failing"
	ArchiveGap        Code = "archive_gap"
	FiguresMissing    Code = "figures_missing"
	CheckHangs        Code = "check_hangs"
	ClientsWaiting    Code = "clients_waiting"
	Oversold          Code = "connections_oversold"
)

// Codes lists all of them, in their order.
var Codes = []Code{
	NotInitialized, PostgresDown, NotInCharge, OtherProtocol, PoolerLeaving, PoolerHangs, PoolerDown, ReloadRefused,
	LoginFailing, CertificateEnded, DumpUnusable, BackupsUnwritable, BackupsFull, ArchiveNotReady, ArchiveFailing, ArchiveGap,
	FiguresMissing, CheckHangs, ClientsWaiting, Oversold,
}

// Harmless reports whether a server with this reason alone is healthy: customers can do what they may, if more slowly.
func (c Code) Harmless() bool { return c == ClientsWaiting || c == Oversold }

// Reason is why a server is not as it should be, for an operator.
type Reason struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Observed is what a health check found out about a server.
type Observed struct {
	PostgresConnected bool
	PoolerRunning     bool
	// CapacityKnown is false if any figure about disk, memory, load or data size could not be collected.
	CapacityKnown bool
	Reasons       []Reason
}

// StatusOf returns healthy only if PostgreSQL and the pooler run, every capacity figure is known, and all reasons are harmless.
func StatusOf(o Observed) Status {
	healthy := o.PostgresConnected && o.PoolerRunning && o.CapacityKnown
	for _, r := range o.Reasons {
		healthy = healthy && r.Code.Harmless()
	}
	if healthy {
		return Healthy
	}
	return Degraded
}
