package config

import (
	"path/filepath"

	"github.com/leani-go/leani/chain"
)

// resolve makes paths absolute and fills in values that depend on others.
func (c *checker) resolve(dir string) {
	cfg := c.config
	absolute := func(p *string) {
		switch {
		case *p == "":
		case filepath.IsAbs(*p):
			*p = filepath.Clean(*p)
		default:
			*p = filepath.Join(dir, *p)
		}
	}
	absolute(&cfg.DataDir)
	absolute(&cfg.Chain.Genesis)
	for i := range cfg.Sources.History {
		absolute(&cfg.Sources.History[i].Manifest)
		absolute(&cfg.Sources.History[i].Folder)
	}
	absolute(&cfg.Sources.Live.Path)
	if b := &cfg.Budgets; !c.has("budgets.history_pipeline.maximum_active_chunks") {
		b.HistoryPipeline.MaximumActiveChunks = max(b.HistoryPipeline.MaximumActiveChunks, b.MapperConcurrency)
	}
	if !c.has("chain.merge_block") && cfg.Chain.ChainID == chain.MainnetChainID {
		cfg.Chain.MergeBlock = MainnetMergeBlock
	}
}
