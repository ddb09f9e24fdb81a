package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/codec"
	"github.com/leani-go/leani/internal/shareddata"
)

// Settings of the benchmarks, as environment variables: `go test` passes flags to one package only.
const (
	// chainVariable is the folder of the test chain, see OpenChain. Without it a chain of 800 blocks
	// in the shared data is used, and without that what needs it is skipped.
	chainVariable = "LEANI_BENCH_CHAIN"
	// dirVariable is a folder where stores that were made for benchmarks are kept for the next run.
	dirVariable = "LEANI_BENCH_DIR"
)

// stores made for the benchmarks of this process, in temporary folders that TestMain removes.
var stores struct {
	temporary string
	chain     *Chain
	lab       map[bool]*Store // by whether senders are filled
	corpus    *Store
	queries   []Query // of corpus
}

func TestMain(m *testing.M) {
	if runAsChild() {
		return
	}
	var err error
	if stores.temporary, err = os.MkdirTemp("", "leani-bench-"); err != nil {
		panic(err)
	}
	stores.lab = make(map[bool]*Store)
	code := m.Run()
	for _, s := range []*Store{stores.lab[false], stores.lab[true], stores.corpus} {
		if s != nil {
			_ = s.Close()
		}
	}
	_ = os.RemoveAll(stores.temporary)
	os.Exit(code)
}

// testChain opens the test chain, or skips.
func testChain(tb testing.TB) *Chain {
	tb.Helper()
	if stores.chain != nil {
		return stores.chain
	}
	c, err := OpenChain(chainFolder(tb))
	if err != nil {
		tb.Fatal(err)
	}
	stores.chain = c
	return c
}

// chainFolder is the folder of the test chain; it skips when there is none.
func chainFolder(tb testing.TB) string {
	tb.Helper()
	if folder := os.Getenv(chainVariable); folder != "" {
		return folder
	}
	return shareddata.Path(tb, "chainlab-800")
}

// labFolder is where a store of the test chain is made. There is one for each chain.
func labFolder(c *Chain, senders bool) string {
	name := "chain-" + common.Bytes2Hex(c.Source.Catalog().Entries()[0].Digest[:4])
	if senders {
		name += "-senders"
	}
	if dir := os.Getenv(dirVariable); dir != "" {
		return filepath.Join(dir, name)
	}
	return filepath.Join(stores.temporary, name)
}

// labStore is a store of the test chain with merged index files, made when first asked for. The page
// cache is large enough for all of it.
func labStore(tb testing.TB, senders bool) (*Store, *Chain) {
	tb.Helper()
	c := testChain(tb)
	if s := stores.lab[senders]; s != nil {
		return s, c
	}
	s, err := OpenStore(StoreOptions{Dir: labFolder(c, senders), ChainID: c.Network.ChainID(), Compression: codec.Snappy, CacheBytes: 1 << 30})
	if err != nil {
		tb.Fatal(err)
	}
	stores.lab[senders] = s
	if _, err := Fill(tb.Context(), s, c, FillOptions{Senders: senders}); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.History.Compact(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s, c
}

// corpusBlocks is the length of the corpus for benchmarks: one merged index file and a few more.
const corpusBlocks = 1500

// corpusStore is a store of the corpus, made when first asked for.
func corpusStore(tb testing.TB) (*Store, []Query) {
	tb.Helper()
	if stores.corpus != nil {
		return stores.corpus, stores.queries
	}
	dir := os.Getenv(dirVariable)
	if dir == "" {
		dir = stores.temporary
	}
	made, err := MakeCorpusStore(tb.Context(), filepath.Join(dir, "corpus-bench"), NewCorpus(1, corpusBlocks), nil)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := OpenStore(StoreOptions{Dir: made.Store(), CacheBytes: 1 << 30})
	if err != nil {
		tb.Fatal(err)
	}
	stores.corpus, stores.queries = s, made.Queries
	return s, made.Queries
}

// corpusNetwork is the chain of the corpus.
func corpusNetwork() *chain.Network { return (&CorpusStore{}).Network() }
