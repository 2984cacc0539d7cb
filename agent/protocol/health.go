package protocol

import "time"

// Health answers GET /health with the fields of the spec, section "Agent health", and two more: Reasons and Checks. Each size
// also appears as text in a field whose name ends with _pretty. A figure that could not be collected is 0 (memory and load:
// null), and Status is then degraded.
type Health struct {
	Status            string `json:"status"` // healthy, degraded
	PostgresConnected bool   `json:"postgres_connected"`
	PgBouncerRunning  bool   `json:"pgbouncer_running"`

	ServerDisk
	PostgresDataUsedBytes    int64  `json:"postgres_data_used_bytes"`
	PostgresDataUsedPretty   string `json:"postgres_data_used_pretty"`
	PostgresManagedDatabases int64  `json:"postgres_managed_database_count"`

	Memory *Memory `json:"memory"`
	Load   *Load   `json:"load"`

	PgBouncerPoolCount         int               `json:"pgbouncer_pool_count"`
	PgBouncerClientCount       int               `json:"pgbouncer_client_count"`
	PgBouncerActiveClientCount int               `json:"pgbouncer_active_client_count"`
	PgBouncerPools             []PgBouncerPool   `json:"pgbouncer_pools"`
	PgBouncerClients           []PgBouncerClient `json:"pgbouncer_clients"`

	LegacyDisk

	// Reasons say why the server is not as it should be. It is healthy with harmless ones.
	Reasons []HealthReason `json:"reasons"`
	Checks  []HealthCheck  `json:"checks"`

	// CapacityKnown: every figure of disk, memory, load and data was collected.
	CapacityKnown bool `json:"-"`
}

// HealthReason is why a server is not as it should be: one of the codes of core/health, and a line for an operator.
type HealthReason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// HealthCheck is one of the things that the agent looks at all the time.
type HealthCheck struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// AgeSeconds is how long ago it was last found to be well; null: never.
	AgeSeconds *float64 `json:"age_seconds"`
}

// ServerDisk is the file system that holds the databases.
type ServerDisk struct {
	TotalBytes  int64  `json:"server_disk_total_bytes"`
	TotalPretty string `json:"server_disk_total_pretty"`
	UsedBytes   int64  `json:"server_disk_used_bytes"`
	UsedPretty  string `json:"server_disk_used_pretty"`
	FreeBytes   int64  `json:"server_disk_free_bytes"`
	FreePretty  string `json:"server_disk_free_pretty"`
	UsedPercent int    `json:"server_disk_used_percent"`
}

// LegacyDisk holds the same figures under the names of earlier versions.
type LegacyDisk struct {
	TotalBytes  int64  `json:"disk_total_bytes"`
	TotalPretty string `json:"disk_total_pretty"`
	UsedBytes   int64  `json:"disk_used_bytes"`
	UsedPretty  string `json:"disk_used_pretty"`
	FreeBytes   int64  `json:"disk_free_bytes"`
	FreePretty  string `json:"disk_free_pretty"`
	UsedPercent int    `json:"disk_used_percent"`
}

// Memory is the machine's main memory.
type Memory struct {
	TotalBytes      int64  `json:"total_bytes"`
	TotalPretty     string `json:"total_pretty"`
	UsedBytes       int64  `json:"used_bytes"`
	UsedPretty      string `json:"used_pretty"`
	AvailableBytes  int64  `json:"available_bytes"`
	AvailablePretty string `json:"available_pretty"`
	UsedPercent     int    `json:"used_percent"`
}

// Load is the machine's load average.
type Load struct {
	OneMinute      float64 `json:"one_minute"`
	FiveMinutes    float64 `json:"five_minutes"`
	FifteenMinutes float64 `json:"fifteen_minutes"`
}

// PgBouncerPool is the pool of one login at one entry.
type PgBouncerPool struct {
	Database      string `json:"database"`
	User          string `json:"user"`
	ClientActive  int64  `json:"client_active"`
	ClientWaiting int64  `json:"client_waiting"`
	ServerActive  int64  `json:"server_active"`
	ServerIdle    int64  `json:"server_idle"`
}

// PgBouncerClient is one live session of a client.
type PgBouncerClient struct {
	Database        string    `json:"database"`
	User            string    `json:"user"`
	ClientAddr      string    `json:"client_addr"` // "unix" for the unix socket
	ApplicationName string    `json:"application_name"`
	ConnectedAt     time.Time `json:"connected_at"`
	State           string    `json:"state"`
}
