"""Whatever a user passes, as restartable rows with targets: arrays, files, runs of blocks, Dask collections."""
